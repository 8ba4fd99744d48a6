package throttlesidecar;

import java.util.List;
import java.util.Map;
import java.util.function.ObjIntConsumer;

/**
 * Asks other sidecars than the broker's own, one each second by turns, so that their word is there when
 * the own one dies. They are not waited for: one that hangs costs its turn.
 *
 * <p>Example: of two others, one of which hangs, the one that answers is asked every 4 s.
 */
final class Others implements AutoCloseable {
    static final long EVERY_MS = 1_000;

    private final List<SidecarClient> clients;
    private final Map<String, String> headers;
    private final ObjIntConsumer<Answer> heard;
    private final Thread thread = new Thread(this::run, "throttle-sidecar-others");
    private volatile boolean closed;

    /**
     * Asks from {@link #start} on.
     *
     * @param clients may be empty.
     * @param headers of each request.
     * @param heard gets each answer and the client's number, on the thread that asks.
     */
    Others(
            List<SidecarClient> clients,
            Map<String, String> headers,
            ObjIntConsumer<Answer> heard) {
        this.clients = List.copyOf(clients);
        this.headers = Map.copyOf(headers);
        this.heard = heard;
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
        for (int turn = 0; !closed; turn = (turn + 1) % clients.size()) {
            Answer answer;
            try {
                answer = clients.get(turn).request(null, 0, headers);
            } catch (RuntimeException | Error bug) {
                answer = Answer.failed("an unexpected error: " + bug);
            }
            if (!closed) {
                heard.accept(answer, turn);
            }
            try {
                Thread.sleep(EVERY_MS);
            } catch (InterruptedException ended) {
                // By close() alone.
            }
        }
    }
}
