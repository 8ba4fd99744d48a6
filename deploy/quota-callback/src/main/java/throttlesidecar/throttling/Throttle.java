package throttlesidecar.throttling;

import throttlesidecar.decision.Leak;
import throttlesidecar.settings.Settings;

/**
 * How one group of clients is throttled: all of the broker's, or those of one user.
 *
 * <p>A value, but for its pacer and its shares. The steps, by factor and time: FREE; THROTTLED while the factor is 0;
 * SCALED while it is between; after either, RAMP for a while, and FREE again. A throttle that begins
 * within Kafka's rate window (11 s) of the last one finds rates which that one shaped, so the larger
 * ones count.
 *
 * <p>Example: factor 0 on a broker that took 6 MB/s, with a leak ratio of 0.01, leaks 54 kB/s by
 * pauses of at most {@code pause.max}: nine tenths of what it may.
 */
public final class Throttle {

    /** How clients are throttled. */
    public enum Mode {
        /** Every client has its own quota. */
        FREE,
        /** The factor is 0: pauses limit all clients together to the leak budget. */
        THROTTLED,
        /** The factor is between 0 and 1: quotas, or the rates before, are multiplied by it. */
        SCALED,
        /** After a release: from the rates before to the clients' own. */
        RAMP
    }

    /** The rate's window: Kafka's default of 11 samples of 1 s. */
    static final long WINDOW_MS = 11_000;

    private static final double NANOS_PER_MS = 1e6;
    private static final long WINDOW_NANOS = WINDOW_MS * 1_000_000;

    /** Real brokers measure rates up to a tenth too high: the leak has to be under them. */
    private static final double SAFETY_FACTOR = 0.9;

    private final Mode mode;
    private final double factor;
    private final long epoch;
    private final long sinceNanos;
    private final Pacer pacer;
    private final LeakShares shares;
    private final double rateBefore;
    private final int setsBefore;

    private Throttle(
            Mode mode,
            double factor,
            long epoch,
            long sinceNanos,
            Pacer pacer,
            LeakShares shares,
            double rateBefore,
            int setsBefore) {
        this.mode = mode;
        this.factor = factor;
        this.epoch = epoch;
        this.sinceNanos = sinceNanos;
        this.pacer = pacer;
        this.shares = shares;
        this.rateBefore = rateBefore;
        this.setsBefore = setsBefore;
    }

    /** Nothing is throttled, and never was. */
    static Throttle free(long nowNanos) {
        return new Throttle(
                Mode.FREE,
                1.0,
                0,
                nowNanos - WINDOW_NANOS,
                null,
                null,
                0.0,
                0);
    }

    /** The rates when a throttle began. */
    static final class Before {
        private final double bytesPerSecond;
        private final int tagSets;

        /**
         * Rates that were measured.
         *
         * @param bytesPerSecond of the whole group.
         * @param tagSets how many of its tag sets had traffic.
         */
        Before(double bytesPerSecond, int tagSets) {
            this.bytesPerSecond = bytesPerSecond;
            this.tagSets = tagSets;
        }
    }

    /** Whether a factor below 1 would begin a throttle, so that the rates now are those before. */
    boolean begins(double newFactor) {
        return newFactor < 1.0 && (mode == Mode.FREE || mode == Mode.RAMP);
    }

    /** Whether the rates that are measured now were made by a throttle, in part at least. */
    boolean isRecent(long nowNanos) {
        return mode != Mode.FREE || nowNanos - sinceNanos < WINDOW_NANOS;
    }

    /** A throttle that begins, with the rates before. */
    Throttle begin(double newFactor, Before before, long newEpoch, long nowNanos) {
        return new Throttle(
                newFactor == 0.0 ? Mode.THROTTLED : Mode.SCALED,
                newFactor,
                newEpoch,
                nowNanos,
                new Pacer(nowNanos),
                new LeakShares(nowNanos),
                before.bytesPerSecond,
                before.tagSets);
    }

    /** The same with another factor below 1. */
    Throttle change(double newFactor, long newEpoch, long nowNanos) {
        if (newFactor == factor) {
            return this;
        }
        return new Throttle(
                newFactor == 0.0 ? Mode.THROTTLED : Mode.SCALED,
                newFactor,
                newEpoch,
                nowNanos,
                new Pacer(nowNanos),
                new LeakShares(nowNanos),
                rateBefore,
                setsBefore);
    }

    /**
     * The factor is 1 again.
     *
     * @param lastsMs how long the ramp takes; 0 for at once.
     */
    Throttle release(long newEpoch, long nowNanos, long lastsMs) {
        boolean ends = mode == Mode.RAMP && nowNanos - sinceNanos >= lastsMs * NANOS_PER_MS;
        if (mode == Mode.FREE || mode == Mode.RAMP && !ends) {
            return this;
        }
        Mode next = ends || lastsMs == 0 ? Mode.FREE : Mode.RAMP;
        return new Throttle(
                next,
                1.0,
                newEpoch,
                nowNanos,
                null,
                null,
                rateBefore,
                setsBefore);
    }

    /** Where the ramp is now; only while there is one. */
    Ramp ramp(long nowNanos, long rampMs) {
        return new Ramp((nowNanos - sinceNanos) / NANOS_PER_MS, Math.max(1, rampMs));
    }

    Mode mode() {
        return mode;
    }

    double factor() {
        return factor;
    }

    /** Each beginning, change and release has its own. */
    long epoch() {
        return epoch;
    }

    Pacer pacer() {
        return pacer;
    }

    /** What all clients together may leak while the factor is 0, bytes per second, at least 1. */
    double budget(Settings limits, Leak leak) {
        boolean absolute = !Double.isNaN(limits.leakBytesPerSecond);
        double budget =
                absolute
                        ? limits.leakBytesPerSecond
                        : limits.leakRatio * SAFETY_FACTOR * rateBefore;
        return Math.max(1.0, budget * leak.share());
    }

    /** Whether the share of a tag set lets a new connection's request pass; it is reserved then. */
    boolean reserve(TagSet tagSet, Settings limits, Leak leak, long nowNanos) {
        return shares.bucket(tagSet).reserve(share(tagSet, limits, leak), nowNanos);
    }

    /** What was reserved is not used. */
    void cancel(TagSet tagSet) {
        shares.bucket(tagSet).cancel();
    }

    /** Takes what has landed from the share of its tag set. */
    void take(
            TagSet tagSet, double bytes, Settings limits, Leak leak, long nowNanos) {
        shares.bucket(tagSet).take(bytes, share(tagSet, limits, leak), nowNanos);
    }

    private double share(TagSet tagSet, Settings limits, Leak leak) {
        return budget(limits, leak) * LeakShares.part(tagSet, rateBefore, fairShare());
    }

    /** The assumed rate of a client that was not seen before the throttle. */
    double fairShare() {
        return setsBefore == 0 ? 0.0 : rateBefore / setsBefore;
    }
}
