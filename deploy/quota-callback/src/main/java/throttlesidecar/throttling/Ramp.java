package throttlesidecar.throttling;

/**
 * The pace of a client after a release. The pace starts a quarter above the client's previous rate and
 * grows linearly.
 *
 * <p>pace(t) = previous rate x (1.25 + t / ramp), at most the client's quota, until four ramps have
 * passed. After a throttle, Kafka's rate window is empty and clients have a backlog. Without a pace, a
 * client with a quota could send ten times its rate, and a client without a quota could send as fast as
 * the network. Clients send a backlog oldest first. At the rate at which the backlog arose, or more, no
 * record waits longer than the record before it, so the ramp lets no record expire. A steeper line
 * would help clients that produce more than before, but it would put many times their rate on a volume
 * that has just left its limit.
 *
 * <p>A client without an earlier rate begins at the average of the clients with one, which may be far
 * from what it needs. Its pace therefore doubles {@value #DOUBLINGS} times a ramp once a sixth of it is
 * over.
 *
 * <p>Example: 2 MB/s before, a ramp of 60 s and a backlog of 80 MB: 2.9 MB/s after 12 s, 4.5 MB/s after
 * 60 s, no backlog after 56 s, and any rate after 240 s. Beside clients of 10 kB/s, a client without an
 * earlier rate has 14 kB/s after 10 s, 63 kB/s after 20 s and 2.6 MB/s after 45 s.
 *
 * <p>A rate that was measured in a ramp, by a broker that knows no earlier one, is such a beginning too.
 * As a previous rate it would hold the client to what the first short release allowed: after three
 * releases of 2 s, a client of 3 MB/s had 0.8 MB/s 40 s after the last one.
 */
final class Ramp {
    /** The first pace of a client if no client's earlier rate is known, bytes per second. */
    static final double FLOOR = 1_000_000.0;

    /**
     * The first pace as a multiple of the previous rate. At 1.0 a client whose backlog is as old as its
     * own time-out would send every record just as it expires. It then drops requests in flight and
     * sends their records again, for as long as the line needs to rise. After 70 s, librdkafka with
     * message.timeout.ms=20000 wrote 2.8 of 4 MB/s in the first 10 s at 1.0, and 4.5 MB/s at 1.25.
     */
    private static final double FIRST = 1.25;

    /** The pace of a client without a previous rate begins to double after this part of a ramp. */
    private static final double BEGINS = 1.0 / 6.0;

    private static final int DOUBLINGS = 12;

    /** The time in which the pace doubles if no client's earlier rate is known. */
    private static final double DOUBLES_MS = 1000.0;

    private Ramp() {}

    /**
     * The pace of a client, bytes per second.
     *
     * @param sinceMs the time since the release.
     * @param rampMs the time in which the pace grows by the previous rate; more than 0.
     * @param before its previous rate, at least the average of the clients with one, bytes per second; 0
     *     if no rate is known, as on a broker that started during the throttle.
     * @param isKnown whether its previous rate is known.
     */
    static double pace(double sinceMs, long rampMs, double before, boolean isKnown) {
        if (before == 0.0) {
            return FLOOR * Math.pow(2.0, sinceMs / DOUBLES_MS);
        }
        double ramps = sinceMs / rampMs;
        double line = before * (FIRST + ramps);
        return isKnown ? line : line * Math.pow(2.0, DOUBLINGS * Math.max(0.0, ramps - BEGINS));
    }
}
