package throttlesidecar;

/**
 * How one group of clients is throttled: all of the broker's, or those of one user.
 *
 * <p>A value, but for its pacer and its shares. The steps, by factor and time: FREE; STOPPED while the factor is 0;
 * SCALED while it is between; after either, RAMP for a while, and FREE again. A throttle that begins
 * within Kafka's rate window (11 s) of the last one finds rates which that one shaped, so the larger
 * ones count.
 *
 * <p>Example: factor 0 on a broker that took 6 MB/s, with a leak ratio of 0.01, leaks 54 kB/s by
 * pauses of at most {@code pause.max}: nine tenths of what it may.
 */
final class Throttle {

    /** How clients are throttled. */
    enum Mode {
        /** Every client has its own quota. */
        FREE,
        /** The factor is 0: pauses limit all clients together to the leak budget. */
        STOPPED,
        /** The factor is between 0 and 1: quotas, or the rates before, are multiplied by it. */
        SCALED,
        /** After a release: from the rates before to the clients' own. */
        RAMP
    }

    /** The rate's window: Kafka's default of 11 samples of 1 s. */
    static final long WINDOW_MS = 11_000;

    private static final double NANOS_PER_MS = 1e6;
    private static final long WINDOW_NANOS = WINDOW_MS * 1_000_000;

    /** From one change of the emergency's scale to the next at least: fill rates are over 5 s. */
    static final long EMERGENCY_STEP_MS = 10_000;

    /** A fill rate is to be over so many pauses: over less than one it sees all clients or none. */
    private static final double PAUSES_OF_A_RATE = 2.0;

    /** A sidecar's fill rates are over the requested window, to half as much again. */
    private static final double RATES_AT_MOST = 1.5;

    private static final double SMALLEST_SCALE = 0.001;

    /**
     * What is aimed at, in horizons until full. Twice as much as must be: a fill rate over two pauses
     * can be half as much again as it is in the long run, and room is lost until the next.
     */
    private static final double AIM = 2.0;

    /** No step is larger: just after the beginning followers may still fetch what they lack. */
    private static final double LARGEST_STEP = 10.0;

    /** When nobody paused before: a scale by which pauses are of 0 ms. */
    private static final double NO_PAUSES = Double.POSITIVE_INFINITY;

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
    private final double emergencyScale;
    private final double scaleBefore;
    private final long scaledAtNanos;

    private Throttle(
            Mode mode,
            double factor,
            long epoch,
            long sinceNanos,
            Pacer pacer,
            LeakShares shares,
            double rateBefore,
            int setsBefore,
            double emergencyScale,
            double scaleBefore,
            long scaledAtNanos) {
        this.mode = mode;
        this.factor = factor;
        this.epoch = epoch;
        this.sinceNanos = sinceNanos;
        this.pacer = pacer;
        this.shares = shares;
        this.rateBefore = rateBefore;
        this.setsBefore = setsBefore;
        this.emergencyScale = emergencyScale;
        this.scaleBefore = scaleBefore;
        this.scaledAtNanos = scaledAtNanos;
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
                0,
                1.0,
                NO_PAUSES,
                nowNanos);
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
                newFactor == 0.0 ? Mode.STOPPED : Mode.SCALED,
                newFactor,
                newEpoch,
                nowNanos,
                new Pacer(nowNanos),
                new LeakShares(nowNanos),
                before.bytesPerSecond,
                before.tagSets,
                1.0,
                NO_PAUSES,
                nowNanos);
    }

    /** The same with another factor below 1. */
    Throttle change(double newFactor, long newEpoch, long nowNanos) {
        if (newFactor == factor) {
            return this;
        }
        return new Throttle(
                newFactor == 0.0 ? Mode.STOPPED : Mode.SCALED,
                newFactor,
                newEpoch,
                nowNanos,
                new Pacer(nowNanos),
                new LeakShares(nowNanos),
                rateBefore,
                setsBefore,
                1.0,
                1.0,
                nowNanos);
    }

    /**
     * The factor is 1 again.
     *
     * @param rampMs the setting; 0 for at once.
     */
    Throttle release(long newEpoch, long nowNanos, long rampMs) {
        long lastsMs = Ramp.lastsMs(rampMs);
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
                setsBefore,
                1.0,
                NO_PAUSES,
                nowNanos);
    }

    /** Where the ramp is now; only while there is one. */
    Ramp ramp(long nowNanos, long rampMs) {
        return new Ramp((nowNanos - sinceNanos) / NANOS_PER_MS, Math.max(1, rampMs));
    }

    /**
     * Puts the disk before the clients, or ends doing so.
     *
     * <p>When a volume would be full within one horizon, what leaks is scaled so that it would be in
     * two; when it would be in more than four, likewise. A scale is judged when all pauses by the one
     * before are over, and a fill rate over two of its own pauses began after that.
     *
     * <p>Example: 3 clients with requests of 1 MB and pauses of 4 s, 15 MB left and a horizon of
     * 600 s: 750 kB/s, full in 20 s. Of 1,200 s that is a sixtieth, and a tenth is the largest step:
     * pauses of 40 s, 75 kB/s. With as much left when that is judged, 4 + 3 x 40 s later, it is full
     * in 200 s, a sixth of 1,200: pauses of 240 s, 12.5 kB/s.
     *
     * @param secondsToFull at the fill rate over {@link #fillWindowMs}; NaN: none fills.
     * @param limits the horizon within which no volume may be full, and the longest pauses.
     */
    Throttle watch(double secondsToFull, Enforcement.Limits limits, long nowNanos) {
        double settleMs =
                Math.max(
                        EMERGENCY_STEP_MS,
                        capMs(scaleBefore, limits) + RATES_AT_MOST * fillWindowMs(limits));
        if (mode != Mode.STOPPED || nowNanos - scaledAtNanos < settleMs * NANOS_PER_MS) {
            return this;
        }
        double share = secondsToFull * 1000.0 / limits.emergencyHorizonMs();
        if (share > 1.0 && share <= AIM * AIM) {
            return this;
        }
        double step = Double.isNaN(share) ? LARGEST_STEP : share / AIM;
        step = Math.min(LARGEST_STEP, Math.max(1.0 / LARGEST_STEP, step));
        double scale = Math.min(1.0, Math.max(SMALLEST_SCALE, emergencyScale * step));
        if (scale == emergencyScale) {
            return this;
        }
        return new Throttle(
                mode,
                factor,
                epoch,
                sinceNanos,
                pacer,
                shares,
                rateBefore,
                setsBefore,
                scale,
                emergencyScale,
                nowNanos);
    }

    /** The longest pause while the factor is 0, ms: longer in an emergency. */
    double capMs(Enforcement.Limits limits) {
        return capMs(emergencyScale, limits);
    }

    private static double capMs(double scale, Enforcement.Limits limits) {
        return Math.min(limits.emergencyPauseMaxMs(), limits.pauseMaxMs() / scale);
    }

    /** Over how long a fill rate has to be that {@link #watch} judges by, ms; 0 while it doesn't. */
    double fillWindowMs(Enforcement.Limits limits) {
        return mode == Mode.STOPPED ? PAUSES_OF_A_RATE * capMs(limits) : 0.0;
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

    /** Whether the disk is put before the clients. */
    boolean isEmergency() {
        return emergencyScale < 1.0;
    }

    /** What all clients together may leak while the factor is 0, bytes per second, at least 1. */
    double budget(double leakRatio, double leakBytesPerSecond) {
        boolean absolute = !Double.isNaN(leakBytesPerSecond);
        double budget = absolute ? leakBytesPerSecond : leakRatio * SAFETY_FACTOR * rateBefore;
        return Math.max(1.0, budget * emergencyScale);
    }

    /** Whether the share of a tag set lets a new connection's request pass; it is reserved then. */
    boolean reserve(TagSet tagSet, Enforcement.Limits limits, long nowNanos) {
        return shares.bucket(tagSet).reserve(share(tagSet, limits), nowNanos);
    }

    /** What was reserved is not used. */
    void cancel(TagSet tagSet) {
        shares.bucket(tagSet).cancel();
    }

    /** Takes what has landed from the share of its tag set. */
    void take(TagSet tagSet, double bytes, Enforcement.Limits limits, long nowNanos) {
        shares.bucket(tagSet).take(bytes, share(tagSet, limits), nowNanos);
    }

    private double share(TagSet tagSet, Enforcement.Limits limits) {
        return budget(limits.leakRatio(), limits.leakBytesPerSecond())
                * LeakShares.part(tagSet, rateBefore, fairShare());
    }

    /** The assumed rate of a client that was not seen before the throttle. */
    double fairShare() {
        return setsBefore == 0 ? 0.0 : rateBefore / setsBefore;
    }
}
