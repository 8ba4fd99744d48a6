package throttlesidecar.support;

import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * How long this broker has run, without the time in which it was paused, such as by a garbage
 * collection or a migration of the virtual machine.
 *
 * <p>A rule that waits for a client's silence must not mistake the broker's own pause for it. So a
 * thread reads the clock every {@link #EVERY_MS} while that matters. Of the time between two readings,
 * at most {@link #MOST_NANOS} counts.
 *
 * <p>Example: readings at 0, 10, 20 and, after a garbage collection, 620 ms. The broker has run for 45
 * ms.
 */
public final class RunningTime implements AutoCloseable {
    public static final long EVERY_MS = 10;

    /** The most time that counts between two readings: less than the shortest silence that matters. */
    static final long MOST_NANOS = 25_000_000L;

    private static final long RARELY_MS = 250;

    private final Clocks clocks;
    private volatile Look last;
    private Repeated thread;

    /** Until the first reading, this is the clock's time. */
    public RunningTime(Clocks clocks) {
        this.clocks = clocks;
    }

    /** A reading of the clock, and how long the broker had run by then. */
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

    /** Reads the clock; one thread at a time calls it. */
    public void look() {
        long now = clocks.nanos();
        last = new Look(now, ran(now));
    }

    /**
     * Starts the thread that reads the clock.
     *
     * @param matters whether a rule waits for a silence; otherwise the clock is read rarely.
     * @param failed receives errors.
     */
    public void start(BooleanSupplier matters, Consumer<Throwable> failed) {
        thread = new Repeated(
                "throttle-sidecar-running", this::look,
                () -> matters.getAsBoolean() ? EVERY_MS : RARELY_MS, failed);
        thread.start();
    }

    @Override
    public void close() {
        if (thread != null) {
            thread.close();
        }
    }
}
