package throttlesidecar;

/**
 * How one group of clients is throttled: all of the broker's, or those of one user.
 *
 * <p>A value, but for its pacer. The steps, by factor and time: FREE; HELD while the factor is 0;
 * SCALED while it is between; after either, RAMP for a while, and FREE again. What it leaves alone
 * is what was before: a throttle that comes back within Kafka's rate window (11 s) finds rates that
 * the last one made, so the larger ones count.
 *
 * <p>Example: factor 0 on a broker that took 6 MB/s, with a leak ratio of 0.01, lets 54 kB/s through
 * by pauses of at most {@code pause.max}: nine tenths of what it may.
 */
final class Throttle {

    /** What is done. */
    enum Mode {
        /** Every client has its own quota. */
        FREE,
        /** The factor is 0: all together are kept to the leak budget, by pauses. */
        HELD,
        /** The factor is between 0 and 1: quotas, or the rates before, are multiplied by it. */
        SCALED,
        /** After a release: from the rates before to the clients' own. */
        RAMP
    }

    /** How long the rate window remembers: Kafka's default of 11 samples of 1 s. */
    static final long WINDOW_MS = 11_000;

    private static final double NANOS_PER_MS = 1e6;
    private static final long WINDOW_NANOS = WINDOW_MS * 1_000_000;

    /** From one change of the emergency's scale to the next at least: fill rates are over 5 s. */
    static final long EMERGENCY_STEP_MS = 10_000;

    private static final double SMALLEST_SCALE = 0.001;

    /** Real brokers tell rates that are up to a tenth too high: what leaks is to be under them. */
    private static final double CAREFUL = 0.9;

    private final Mode mode;
    private final double factor;
    private final long epoch;
    private final long sinceNanos;
    private final Pacer pacer;
    private final double rateBefore;
    private final int setsBefore;
    private final double emergencyScale;
    private final long scaledAtNanos;

    private Throttle(
            Mode mode,
            double factor,
            long epoch,
            long sinceNanos,
            Pacer pacer,
            double rateBefore,
            int setsBefore,
            double emergencyScale,
            long scaledAtNanos) {
        this.mode = mode;
        this.factor = factor;
        this.epoch = epoch;
        this.sinceNanos = sinceNanos;
        this.pacer = pacer;
        this.rateBefore = rateBefore;
        this.setsBefore = setsBefore;
        this.emergencyScale = emergencyScale;
        this.scaledAtNanos = scaledAtNanos;
    }

    /** Nothing is throttled, and never was. */
    static Throttle free(long nowNanos) {
        return new Throttle(
                Mode.FREE, 1.0, 0, nowNanos - WINDOW_NANOS, null, 0.0, 0, 1.0, nowNanos);
    }

    /** What was there when a throttle began. */
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
                newFactor == 0.0 ? Mode.HELD : Mode.SCALED,
                newFactor,
                newEpoch,
                nowNanos,
                new Pacer(nowNanos),
                before.bytesPerSecond,
                before.tagSets,
                1.0,
                nowNanos);
    }

    /** The same with another factor below 1. */
    Throttle change(double newFactor, long newEpoch, long nowNanos) {
        if (newFactor == factor) {
            return this;
        }
        return new Throttle(
                newFactor == 0.0 ? Mode.HELD : Mode.SCALED,
                newFactor,
                newEpoch,
                nowNanos,
                new Pacer(nowNanos),
                rateBefore,
                setsBefore,
                1.0,
                nowNanos);
    }

    /**
     * The factor is 1 again.
     *
     * @param rampMs the setting; 0 for at once.
     * @param pauseMaxMs the longest pause that was given.
     */
    Throttle release(long newEpoch, long nowNanos, long rampMs, long pauseMaxMs) {
        long lastsMs = Ramp.lastsMs(rampMs, pauseMaxMs);
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
                rateBefore,
                setsBefore,
                1.0,
                nowNanos);
    }

    /** Where the ramp is now; only while there is one. */
    Ramp ramp(long nowNanos, long rampMs, long pauseMaxMs) {
        return new Ramp((nowNanos - sinceNanos) / NANOS_PER_MS, Math.max(1, rampMs), pauseMaxMs);
    }

    /**
     * Puts the disk before the clients, or ends doing so.
     *
     * <p>What leaks is scaled, step by step, until the volume would not be full within the horizon;
     * when it would not be for twice as long, the scale goes back the same way.
     *
     * @param secondsToFull at the present fill rate; NaN: none fills.
     * @param horizonMs within which no volume may be full, ms.
     * @param pauseMaxMs the longest pause without an emergency, ms; what it does shows in the fill
     *     rate after some seconds more.
     */
    Throttle watch(double secondsToFull, long horizonMs, long pauseMaxMs, long nowNanos) {
        // A pause that is twice as long takes twice as long to show.
        double settleMs = Math.max(EMERGENCY_STEP_MS, 2.0 * pauseMaxMs / emergencyScale);
        if (mode != Mode.HELD || nowNanos - scaledAtNanos < settleMs * 1e6) {
            return this;
        }
        double share = secondsToFull * 1000.0 / horizonMs;
        double scale = emergencyScale;
        if (share <= 1.0) {
            scale = Math.max(SMALLEST_SCALE, emergencyScale * Math.max(share, 0.1));
        } else if (Double.isNaN(share) || share > 2.0) {
            scale = Math.min(1.0, emergencyScale * 2.0);
        }
        if (scale == emergencyScale) {
            return this;
        }
        return new Throttle(
                mode, factor, epoch, sinceNanos, pacer, rateBefore, setsBefore, scale, nowNanos);
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

    /** Bytes per second of the whole group when the throttle began. */
    double rateBefore() {
        return rateBefore;
    }

    /** Whether the disk is put before the clients. */
    boolean isEmergency() {
        return emergencyScale < 1.0;
    }

    /** By which all that leaks is multiplied, by longer pauses: 1 without an emergency. */
    double emergencyScale() {
        return emergencyScale;
    }

    /** What all together may let through while the factor is 0, bytes per second, at least 1. */
    double budget(double leakRatio, double leakBytesPerSecond) {
        boolean absolute = !Double.isNaN(leakBytesPerSecond);
        double budget = absolute ? leakBytesPerSecond : leakRatio * CAREFUL * rateBefore;
        return Math.max(1.0, budget * emergencyScale);
    }

    /** What a client may have been sending that was not seen before the throttle. */
    double fairShare() {
        return setsBefore == 0 ? 0.0 : rateBefore / setsBefore;
    }
}
