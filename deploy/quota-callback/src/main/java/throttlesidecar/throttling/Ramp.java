package throttlesidecar.throttling;

/**
 * The pace of a client after a release, at one moment: one line, from its rate before.
 *
 * <p>pace(t) = rate before x (1 + t / ramp), at most the client's quota, until the ramp has passed
 * four times. After a throttle Kafka's rate window is empty and clients have a backlog:
 * without a pace even a client with a quota could send ten times its rate, and one without as fast as
 * the network. A backlog is sent oldest first, so at the rate at which it was made or more no record
 * waits for longer than the one before it did, and none expires by the ramp. A steeper line would
 * help clients that make more than before, and puts many times their rate on a volume that has just
 * come over its limit.
 *
 * <p>A client without an earlier rate begins at the average of the clients with one, which may be far
 * from what it needs. Its pace therefore doubles {@value #DOUBLINGS} times a ramp once a sixth of it is over.
 *
 * <p>Example: 2 MB/s before, a ramp of 60 s and a backlog of 80 MB: 2.4 MB/s after 12 s, 4 MB/s after
 * 60 s, no backlog after 69 s, and any rate after 240 s. Beside clients of 10 kB/s one that had none
 * has 12 kB/s after 10 s, 45 kB/s after 20 s and 2 MB/s after 45 s.
 */
final class Ramp {
    /** Where a client begins of whose rate nothing is known, nor of others', bytes per second. */
    static final double FLOOR = 1_000_000.0;

    /** A sixth of a ramp is as long as the line is within a fifth of the rate before. */
    private static final double BEGINS = 1.0 / 6.0;

    private static final int DOUBLINGS = 12;

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

    /**
     * The pace of a client.
     *
     * @param before its rate before, bytes per second; 0: none.
     * @param mean the average rate of the clients with an earlier rate; 0 if no rate is known, as on a
     *     broker that started in the throttle.
     */
    double pace(double before, double mean) {
        if (before == 0.0 && mean == 0.0) {
            return FLOOR * Math.pow(2.0, sinceMs / DOUBLES_MS);
        }
        double ramps = sinceMs / rampMs;
        double line = Math.max(before, mean) * (1.0 + ramps);
        return before > 0.0 ? line : line * Math.pow(2.0, DOUBLINGS * Math.max(0.0, ramps - BEGINS));
    }
}
