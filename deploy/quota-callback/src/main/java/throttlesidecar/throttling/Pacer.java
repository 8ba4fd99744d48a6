package throttlesidecar.throttling;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Computes how long each of several clients has to pause, so that all of them together keep to a rate.
 *
 * <p>The algorithm is virtual scheduling (the generic cell rate algorithm). It keeps the moment at
 * which all landed bytes would have passed at the rate. Each request moves this moment by its bytes /
 * rate, and its client pauses until then. So N clients that send requests of r bytes each pause for N r
 * / rate. That is the shortest pause that keeps to the rate, and N and r need not be known.
 *
 * <p>No pause is longer than a cap, and the moment is never further away than the cap. So the rate that
 * passes is the larger of the given rate and N r / cap.
 *
 * <p>Example: at 60,000 B/s, three clients with requests of 20,000 B each pause for 1 s. A hundred
 * clients would pause for 33 s, but with a cap of 4 s they pause for 4 s, and 500,000 B/s pass.
 *
 * <p>Many request threads share a pacer; it uses no locks.
 */
final class Pacer {
    private static final double NANOS_PER_S = 1e9;
    private static final double NANOS_PER_MS = 1e6;

    private final long origin;

    /** When all landed bytes have passed, nanoseconds after the origin. */
    private final AtomicLong passedAt = new AtomicLong();

    /** At first, no bytes have landed. */
    Pacer(long nowNanos) {
        origin = nowNanos;
    }

    /**
     * The pause for a request that has landed.
     *
     * @param bytes its size, more than 0.
     * @param bytesPerSecond the rate, more than 0.
     * @param capMs the longest pause, ms.
     * @param toleranceMs how far a client may be ahead of the rate without a pause, ms.
     * @param nowNanos from the same clock as the origin.
     * @return ms, from 0 to the cap.
     */
    double pauseMs(
            double bytes, double bytesPerSecond, double capMs, double toleranceMs, long nowNanos) {
        long now = nowNanos - origin;
        double cost = bytes / bytesPerSecond * NANOS_PER_S;
        double furthest = (capMs + toleranceMs) * NANOS_PER_MS;
        while (true) {
            long before = passedAt.get();
            double ahead = Math.min(Math.max(before - now, 0L) + cost, furthest);
            if (passedAt.compareAndSet(before, now + (long) ahead)) {
                return Math.max(0.0, ahead / NANOS_PER_MS - toleranceMs);
            }
        }
    }

    /** The time until all landed bytes have passed, ms. */
    double aheadMs(long nowNanos) {
        return Math.max(0L, passedAt.get() - (nowNanos - origin)) / NANOS_PER_MS;
    }
}
