package throttlesidecar;

/**
 * The pace of a client after a release, at one moment: one line, from its rate before.
 *
 * <p>pace(t) = rate before x (1 + t / ramp), at most the client's quota, until the ramp has passed
 * {@value #RAMPS} times. After a throttle Kafka's rate window is empty and clients have a backlog:
 * without a pace even a client with a quota could send ten times its rate, and one without as fast as
 * the network. A backlog is sent oldest first, so at the rate at which it was made or more no record
 * waits for longer than the one before it did, and none expires by the ramp.
 *
 * <p>Example: 2 MB/s before, a ramp of 60 s and a backlog of 80 MB: 2.4 MB/s after 12 s, 4 MB/s after
 * 60 s, no backlog after 69 s, and any rate after 240 s.
 */
final class Ramp {
    /** Where a client begins of whose rate nothing is known, nor of others', bytes per second. */
    static final double FLOOR = 1_000_000.0;

    /** By then a backlog of eight ramps' traffic is gone: the area under the line. */
    private static final int RAMPS = 4;

    /** In which the pace of a client doubles of which nothing is known. */
    private static final double DOUBLES_MS = 1000.0;

    private final double sinceMs;
    private final long rampMs;

    /**
     * A moment of a ramp.
     *
     * @param sinceMs since the release.
     * @param rampMs in which the pace grows by the rate before; more than 0.
     */
    Ramp(double sinceMs, long rampMs) {
        this.sinceMs = sinceMs;
        this.rampMs = rampMs;
    }

    /** How long all of it takes, ms; 0 without a ramp. */
    static long lastsMs(long rampMs) {
        return RAMPS * rampMs;
    }

    /**
     * The pace of a client.
     *
     * @param before its rate before, bytes per second; 0: unknown, as on a broker that started in the
     *     throttle.
     */
    double pace(double before) {
        return before > 0.0
                ? before * (1.0 + sinceMs / rampMs)
                : FLOOR * Math.pow(2.0, sinceMs / DOUBLES_MS);
    }
}
