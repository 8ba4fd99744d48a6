package throttlesidecar.reading;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.ObjIntConsumer;

/**
 * Requests the decisions of other sidecars than the broker's own, one after another, a second after the
 * last answer. So a recent decision is known when the own sidecar dies. A sidecar that fails has to wait,
 * so that those that answer are asked more often.
 */
final class OtherSidecars implements AutoCloseable {
    private final List<SidecarClient> clients;
    private final Map<String, String> headers;
    private final ObjIntConsumer<Answer> answered;
    private final Thread thread = new Thread(this::run, "throttle-sidecar-others");
    private volatile boolean closed;

    /**
     * Asks from {@link #start} on.
     *
     * @param clients may be empty.
     * @param headers of each request.
     * @param answered gets each answer and the client's number, on the thread that asks.
     */
    OtherSidecars(
            List<SidecarClient> clients,
            Map<String, String> headers,
            ObjIntConsumer<Answer> answered) {
        this.clients = List.copyOf(clients);
        this.headers = Map.copyOf(headers);
        this.answered = answered;
        thread.setDaemon(true);
    }

    void start() {
        if (!clients.isEmpty()) {
            thread.start();
        }
    }

    @Override
    public void close() {
        closed = true;
        clients.forEach(SidecarClient::close);
        thread.interrupt();
    }

    private void run() {
        Turns turns = new Turns(clients.size(), System.nanoTime());
        while (!closed) {
            int turn = turns.next();
            sleep(turns.dueNanos() - System.nanoTime());
            if (closed) {
                return;
            }
            Answer answer;
            try {
                answer = clients.get(turn).request(null, 0, headers);
            } catch (RuntimeException | Error bug) {
                answer = Answer.failed("an unexpected error: " + bug);
            }
            if (!closed) {
                answered.accept(answer, turn);
            }
            turns.ended(turn, answer.isFailure(), System.nanoTime());
        }
    }

    private static void sleep(long nanos) {
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
        } catch (InterruptedException ended) {
            // By close() alone.
        }
    }
}
