package throttlesidecar;

/**
 * The pace of clients after a release, up to full speed, at one moment of it.
 *
 * <p>After a throttle Kafka's rate window is empty and clients have a backlog: even a client with a
 * quota could send ten times its rate for a while, and one without as fast as the network. So each
 * is paced until the last of them has come back from its pause and then filled the window. With a
 * quota: from its rate before up to the quota, over the ramp. Without one: from a little below its
 * rate before to a little above it, since each connection lands a request of its backlog before it
 * can be paced; after that, doubling with every ramp, so that what is left of a backlog is no flood
 * either.
 *
 * <p>Example: 6 MB/s before, no quota, a ramp of 5 s, pauses of up to 4 s: 5.1 to 6.1 MB/s for 5 s,
 * 6.1 MB/s until 15 s after the release, 12 MB/s at 20 s, 24 MB/s at 25 s, any rate at 40 s.
 */
final class Ramp {
    /** Of the rate before, where a client without a quota begins. */
    static final double BEGIN = 0.85;

    /** And where it is after the ramp. */
    static final double END = 1.02;

    /** Where a client begins of whose rate nothing is known, bytes per second. */
    static final double FLOOR = 1_000_000.0;

    /** How many times the rate doubles before it is free. */
    private static final int DOUBLINGS = 5;

    /** Of a client of whose rate nothing is known, and nobody else's either. */
    private static final double SLOW_START_MS = 1000.0;

    private final double sinceMs;
    private final long rampMs;
    private final long levelMs;

    /**
     * A moment of a ramp.
     *
     * @param sinceMs since the release.
     * @param rampMs the setting; more than 0.
     * @param pauseMaxMs the longest pause.
     */
    Ramp(double sinceMs, long rampMs, long pauseMaxMs) {
        this.sinceMs = sinceMs;
        this.rampMs = rampMs;
        this.levelMs = levelMs(rampMs, pauseMaxMs);
    }

    private static long levelMs(long rampMs, long pauseMaxMs) {
        return Math.max(rampMs, Throttle.WINDOW_MS) + pauseMaxMs;
    }

    /** How long all of it takes, ms; 0 without a ramp. */
    static long lastsMs(long rampMs, long pauseMaxMs) {
        return rampMs <= 0 ? 0 : levelMs(rampMs, pauseMaxMs) + DOUBLINGS * rampMs;
    }

    private double share() {
        return Math.min(1.0, sinceMs / rampMs);
    }

    /** What rates before are multiplied by. */
    double headroom() {
        double doublings = Math.max(0.0, sinceMs - levelMs) / rampMs;
        return (BEGIN + (END - BEGIN) * share()) * Math.pow(2.0, doublings);
    }

    /**
     * The pace of a client with a quota.
     *
     * @param start its rate before, bytes per second.
     * @param own its quota, bytes per second.
     * @return bytes per second; infinite once Kafka's window is full, and limits it by itself.
     */
    double towards(double start, double own) {
        double from = Math.min(start, own);
        return sinceMs < levelMs ? from + (own - from) * share() : Double.POSITIVE_INFINITY;
    }

    /** The pace of a client when no rate is known, as on a broker that started in the throttle. */
    double slowStart() {
        return FLOOR * Math.pow(2.0, sinceMs / SLOW_START_MS);
    }
}
