package throttlesidecar.support;

import java.util.function.BooleanSupplier;

/**
 * How long this broker has run for, without the time in which it stood still: a collection of garbage,
 * a machine that starves or is moved.
 *
 * <p>Who waits for a client's silence must not take the broker's own for it. So a thread looks at the
 * clock every {@link #EVERY_MS}, while that matters, and of the time between two looks no more than
 * {@link #MOST_NANOS} counts.
 *
 * <p>Example: looks at 0, 10, 20 and, after a collection of garbage, 620 ms. It has run for 45 ms.
 */
public final class RunningTime implements AutoCloseable {
    public static final long EVERY_MS = 10;

    /** Of the time between two looks: less than the shortest silence that anybody waits for. */
    static final long MOST_NANOS = 25_000_000L;

    private static final long RARELY_MS = 250;

    private final Clocks clocks;
    private volatile Look last;
    private volatile boolean closed;
    private Thread thread;

    /** Until the first look it is the clock's time. */
    public RunningTime(Clocks clocks) {
        this.clocks = clocks;
    }

    /** The clock, and what it had run for, at a look. */
    private static final class Look {
        private final long nanos;
        private final long ranNanos;

        Look(long nanos, long ranNanos) {
            this.nanos = nanos;
            this.ranNanos = ranNanos;
        }
    }

    /** Nanoseconds from an unknown start. */
    public long nanos() {
        return ran(clocks.nanos());
    }

    private long ran(long now) {
        Look look = last;
        return look == null ? now : look.ranNanos + Math.min(now - look.nanos, MOST_NANOS);
    }

    /** One look at the clock, by one thread at a time. */
    public void look() {
        long now = clocks.nanos();
        last = new Look(now, ran(now));
    }

    /**
     * Looks from now on.
     *
     * @param matters whether anybody waits for a silence; it looks rarely while nobody does.
     */
    public void start(BooleanSupplier matters) {
        thread = new Thread(() -> run(matters), "throttle-sidecar-running");
        thread.setDaemon(true);
        thread.start();
    }

    private void run(BooleanSupplier matters) {
        while (!closed) {
            look();
            try {
                Thread.sleep(matters.getAsBoolean() ? EVERY_MS : RARELY_MS);
            } catch (InterruptedException ended) {
                // By close() alone.
            }
        }
    }

    @Override
    public void close() {
        closed = true;
        if (thread != null) {
            thread.interrupt();
        }
    }
}
