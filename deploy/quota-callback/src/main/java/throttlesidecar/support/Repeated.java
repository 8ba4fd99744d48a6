package throttlesidecar.support;

import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** A thread that does the same again and again, whatever error it meets, until it is closed. */
public final class Repeated implements AutoCloseable {
    private final Runnable work;
    private final LongSupplier restMs;
    private final Consumer<Throwable> failed;
    private final Thread thread;
    private volatile boolean closed;

    /**
     * A thread that begins with {@link #start}.
     *
     * @param restMs the time from the end of the work to its next beginning, ms.
     * @param failed receives each error.
     */
    public Repeated(String name, Runnable work, LongSupplier restMs, Consumer<Throwable> failed) {
        this.work = work;
        this.restMs = restMs;
        this.failed = failed;
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    public void start() {
        thread.start();
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
    }

    private void run() {
        while (!closed) {
            attempt();
            try {
                Thread.sleep(restMs.getAsLong());
            } catch (InterruptedException ended) {
                // Only close() interrupts this thread.
            }
        }
    }

    private void attempt() {
        try {
            work.run();
        } catch (Throwable error) {
            try {
                failed.accept(error);
            } catch (Throwable again) {
                // Without memory, not even a note can be made.
            }
        }
    }
}
