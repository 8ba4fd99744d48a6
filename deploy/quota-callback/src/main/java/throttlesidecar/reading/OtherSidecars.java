package throttlesidecar.reading;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Requests the decisions of other sidecars than the broker's own, one after another, a second after the
 * last answer. So a recent decision is known when the own sidecar dies. A sidecar that fails has to
 * wait, so that those that answer are asked more often.
 */
final class OtherSidecars implements AutoCloseable {
    /** Receives each answer, the sidecar's number, and the object that asked, on that object's thread. */
    interface Listener {
        void answered(Answer answer, int number, OtherSidecars by);
    }

    private static final long AFTER_BUG_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final List<SidecarClient> clients;
    private final Map<String, String> headers;
    private final Listener listener;
    private final Thread thread = new Thread(this::run, "throttle-sidecar-others");
    private volatile boolean closed;

    /** Requests begin with {@link #start}. The list of clients may be empty. */
    OtherSidecars(List<SidecarClient> clients, Map<String, String> headers, Listener listener) {
        this.clients = List.copyOf(clients);
        this.headers = Map.copyOf(headers);
        this.listener = listener;
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
        PollingOrder order = new PollingOrder(clients.size(), System.nanoTime());
        while (!closed) {
            try {
                ask(order);
            } catch (RuntimeException | Error bug) {
                sleep(AFTER_BUG_NANOS);
            }
        }
    }

    private void ask(PollingOrder order) {
        int number = order.next();
        sleep(order.dueNanos() - System.nanoTime());
        if (closed) {
            return;
        }
        Answer answer = clients.get(number).requestOrFail(null, 0, headers);
        if (!closed) {
            listener.answered(answer, number, this);
        }
        order.ended(number, answer.isFailure(), System.nanoTime());
    }

    private static void sleep(long nanos) {
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
        } catch (InterruptedException ended) {
            // Only close() interrupts this thread.
        }
    }
}
