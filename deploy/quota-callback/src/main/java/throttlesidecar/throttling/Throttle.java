package throttlesidecar.throttling;

import throttlesidecar.decision.Leak;
import throttlesidecar.settings.Settings;

/**
 * How one group of clients is throttled: all of the broker's, or those of one user. Immutable, except for
 * its pacer and its shares.
 *
 * <p>The modes, by factor and time: FREE; THROTTLED while the factor is 0; SCALED while it is between 0
 * and 1; after either, RAMP for a while, and FREE again. A throttle that begins within Kafka's rate
 * window (11 s) of the last one finds rates which that one shaped, so the larger ones count.
 *
 * <p>Example: factor 0 on a broker that took 6 MB/s, with a leak ratio of 0.01: 54 kB/s leak by pauses
 * of at most {@code pause.max}, which is nine tenths of what may leak.
 */
public final class Throttle {

    /** How clients are throttled. */
    public enum Mode {
        /** Every client has its own quota. */
        FREE,
        /** The factor is 0: pauses limit all clients together to the leak budget. */
        THROTTLED,
        /** The factor is between 0 and 1: it multiplies quotas, or the rates before the throttle. */
        SCALED,
        /** After a release: the pace grows from the rates before to the clients' own quotas. */
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
    private final Before before;

    private Throttle(Mode mode, double factor, long epoch, long sinceNanos, Before before) {
        boolean isRunning = mode == Mode.THROTTLED || mode == Mode.SCALED;
        this.mode = mode;
        this.factor = factor;
        this.epoch = epoch;
        this.sinceNanos = sinceNanos;
        this.pacer = isRunning ? new Pacer(sinceNanos) : null;
        this.shares = isRunning ? new LeakShares(sinceNanos) : null;
        this.before = before;
    }

    /** Nothing is throttled, and never was. */
    static Throttle free(long nowNanos) {
        return new Throttle(Mode.FREE, 1.0, 0, nowNanos - WINDOW_NANOS, new Before(0.0, 0));
    }

    /** The rates when a throttle began. */
    static final class Before {
        private final double bytesPerSecond;
        private final int tagSets;

        /**
         * Rates that were measured.
         *
         * @param bytesPerSecond of the whole group.
         * @param tagSets how many of the group's tag sets had traffic.
         */
        Before(double bytesPerSecond, int tagSets) {
            this.bytesPerSecond = bytesPerSecond;
            this.tagSets = tagSets;
        }
    }

    /** Whether a factor would begin a throttle, so that the rates of now are those before it. */
    boolean begins(double newFactor) {
        return newFactor < 1.0 && (mode == Mode.FREE || mode == Mode.RAMP);
    }

    /** Whether the rates that are measured now were made by a throttle, in part at least. */
    boolean isRecent(long nowNanos) {
        return mode != Mode.FREE || nowNanos - sinceNanos < WINDOW_NANOS;
    }

    /** A throttle that begins, with the rates before it. */
    Throttle begin(double newFactor, Before rates, long newEpoch, long nowNanos) {
        Mode next = newFactor == 0.0 ? Mode.THROTTLED : Mode.SCALED;
        return new Throttle(next, newFactor, newEpoch, nowNanos, rates);
    }

    /** The same throttle with another factor below 1. */
    Throttle change(double newFactor, long newEpoch, long nowNanos) {
        return newFactor == factor ? this : begin(newFactor, before, newEpoch, nowNanos);
    }

    /**
     * The factor is 1 again.
     *
     * @param lastsMs how long the ramp takes; 0: none.
     */
    Throttle release(long newEpoch, long nowNanos, long lastsMs) {
        boolean ends = mode == Mode.RAMP && nowNanos - sinceNanos >= lastsMs * NANOS_PER_MS;
        if (mode == Mode.FREE || mode == Mode.RAMP && !ends) {
            return this;
        }
        Mode next = ends || lastsMs == 0 ? Mode.FREE : Mode.RAMP;
        return new Throttle(next, 1.0, newEpoch, nowNanos, before);
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
    double budget(Settings settings, Leak leak) {
        double budget =
                Double.isNaN(settings.leakBytesPerSecond)
                        ? settings.leakRatio * SAFETY_FACTOR * before.bytesPerSecond
                        : settings.leakBytesPerSecond;
        return Math.max(1.0, budget * leak.share());
    }

    /** Whether a new connection's request may land by the share of its tag set, which it reserves. */
    boolean reserve(TagSet tagSet, Settings settings, Leak leak, long nowNanos) {
        return shares.bucket(tagSet).reserve(share(tagSet, settings, leak), nowNanos);
    }

    /** Gives back what was reserved. */
    void cancel(TagSet tagSet) {
        shares.bucket(tagSet).cancel();
    }

    /** Takes what has landed from the share of its tag set. */
    void take(TagSet tagSet, double bytes, Settings settings, Leak leak, long nowNanos) {
        shares.bucket(tagSet).take(bytes, share(tagSet, settings, leak), nowNanos);
    }

    private double share(TagSet tagSet, Settings settings, Leak leak) {
        double part = LeakShares.part(tagSet, before.bytesPerSecond, fairShare());
        return budget(settings, leak) * part;
    }

    /** The assumed rate of a client that was not seen before the throttle. */
    double fairShare() {
        return before.tagSets == 0 ? 0.0 : before.bytesPerSecond / before.tagSets;
    }
}
