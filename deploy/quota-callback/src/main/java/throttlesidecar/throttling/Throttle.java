package throttlesidecar.throttling;

import throttlesidecar.decision.Leak;
import throttlesidecar.settings.Settings;

/**
 * How one group of clients is throttled: all clients of the broker, or those of one user. Immutable,
 * except for its pacer and its shares.
 *
 * <p>The mode follows from factor and time: first FREE; THROTTLED while the factor is 0; SCALED while
 * it is between 0 and 1; then RAMP for a while, and FREE again. If a throttle begins within Kafka's
 * rate window (11 s) of the last one, that throttle has influenced the measured rates, so the larger
 * rates count.
 *
 * <p>Example: a factor of 0 on a broker that took 6 MB/s, with a leak ratio of 0.01. 54 kB/s leak by
 * pauses of at most {@code pause.max.ms}, which is nine tenths of the bytes that may leak.
 */
public final class Throttle {

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

    /** Brokers measure rates up to a tenth too high, so the leak is reduced by a tenth. */
    private static final double SAFETY_FACTOR = 0.9;

    final Mode mode;
    final double factor;

    /** A number that each beginning, change and release has for itself. */
    final long epoch;

    final Pacer pacer;
    private final long sinceNanos;
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

    /** A throttle that never throttled any client. */
    static Throttle free(long nowNanos) {
        return new Throttle(Mode.FREE, 1.0, 0, nowNanos - WINDOW_NANOS, new Before(0.0, 0));
    }

    /** The rates before a throttle began. */
    static final class Before {
        private final double bytesPerSecond;
        final int tagSets;

        /**
         * Measured rates.
         *
         * @param bytesPerSecond of the whole group.
         * @param tagSets how many of the group's tag sets had traffic.
         */
        Before(double bytesPerSecond, int tagSets) {
            this.bytesPerSecond = bytesPerSecond;
            this.tagSets = tagSets;
        }

        /** The average rate of the tag sets with traffic; 0 if none had any. */
        double fairShare() {
            return tagSets == 0 ? 0.0 : bytesPerSecond / tagSets;
        }
    }

    /** Whether a factor would begin a throttle, so that the current rates are those before it. */
    boolean begins(double newFactor) {
        return newFactor < 1.0 && (mode == Mode.FREE || mode == Mode.RAMP);
    }

    /** Whether a throttle has influenced the rates that are measured now. */
    boolean isRecent(long nowNanos) {
        return mode != Mode.FREE || nowNanos - sinceNanos < WINDOW_NANOS;
    }

    /** A throttle that begins now, with the rates before it. */
    Throttle begin(double newFactor, Before rates, long newEpoch, long nowNanos) {
        Mode next = newFactor == 0.0 ? Mode.THROTTLED : Mode.SCALED;
        return new Throttle(next, newFactor, newEpoch, nowNanos, rates);
    }

    /** The same throttle with another factor below 1. */
    Throttle change(double newFactor, long newEpoch, long nowNanos) {
        return begin(newFactor, before, newEpoch, nowNanos);
    }

    /**
     * The throttle after the factor is 1 again.
     *
     * @param lastsMs how long the ramp lasts; 0 for no ramp.
     */
    Throttle release(long newEpoch, long nowNanos, long lastsMs) {
        boolean ends = mode == Mode.RAMP && nowNanos - sinceNanos >= lastsMs * NANOS_PER_MS;
        if (mode == Mode.FREE || mode == Mode.RAMP && !ends) {
            return this;
        }
        Mode next = ends || lastsMs == 0 ? Mode.FREE : Mode.RAMP;
        return new Throttle(next, 1.0, newEpoch, nowNanos, before);
    }

    /** The pace of a client by this ramp, from its previous rate; call it only in the mode RAMP. */
    double pace(TagSet tagSet, long rampMs, long nowNanos) {
        double sinceMs = (nowNanos - sinceNanos) / NANOS_PER_MS;
        double rateBefore = tagSet.before;
        boolean isKnown = rateBefore > 0.0 && !tagSet.isBeforeLeast;
        return Ramp.pace(sinceMs, Math.max(1, rampMs), Math.max(rateBefore, fairShare()), isKnown);
    }

    /** The rate that all clients together may leak while the factor is 0, bytes per second, at least 1. */
    double budget(Settings settings, Leak leak) {
        double budget = Double.isNaN(settings.leakBytesPerSecond)
                ? settings.leakRatio * SAFETY_FACTOR * before.bytesPerSecond
                : settings.leakBytesPerSecond;
        return Math.max(1.0, budget * leak.share);
    }

    /** Whether the share of a tag set lets a new connection's request land; the share is then reserved. */
    boolean reserve(TagSet tagSet, Settings settings, Leak leak, long nowNanos) {
        return shares.bucket(tagSet).reserve(share(tagSet, settings, leak), nowNanos);
    }

    void cancel(TagSet tagSet) {
        shares.bucket(tagSet).cancel();
    }

    void take(TagSet tagSet, double bytes, Settings settings, Leak leak, long nowNanos) {
        shares.bucket(tagSet).take(bytes, share(tagSet, settings, leak), nowNanos);
    }

    private double share(TagSet tagSet, Settings settings, Leak leak) {
        double part = LeakShares.part(tagSet, before.bytesPerSecond, fairShare());
        return budget(settings, leak) * part;
    }

    /** The assumed previous rate of a client that had none before the throttle. */
    double fairShare() {
        return before.fairShare();
    }
}
