package throttlesidecar.throttling;

import java.util.concurrent.atomic.AtomicLong;

/**
 * How long each of several clients has to pause, so that all of them together stay within a rate.
 *
 * <p>Virtual scheduling (the generic cell rate algorithm): there is one point in time at which all
 * that has landed would have passed at the rate. Each request moves it on by its bytes / rate, and
 * its client pauses until then. So N clients that send requests of r bytes each pause for N r /
 * rate, which is the shortest pause within the rate, and N and r need not be known.
 *
 * <p>No pause is longer than a cap, and the point is never further away than that. So what passes is
 * the larger of the rate and N r / cap.
 *
 * <p>Example: at 60,000 B/s three clients with requests of 20,000 B each pause for 1 s; a hundred
 * of them would pause for 33 s, but do for a cap of 4 s: 500,000 B/s.
 *
 * <p>Without locks: many request threads share one.
 */
final class Pacer {
    private static final double NANOS_PER_S = 1e9;
    private static final double NANOS_PER_MS = 1e6;

    private final long origin;

    /** When all that has landed has passed, nanoseconds after the origin. */
    private final AtomicLong passedAt = new AtomicLong();

    /** At first nothing has landed. */
    Pacer(long nowNanos) {
        origin = nowNanos;
    }

    /**
     * The pause for a request that has landed.
     *
     * @param bytes its size, more than 0.
     * @param bytesPerSecond the rate, more than 0.
     * @param capMs the longest pause, ms.
     * @param toleranceMs how far ahead of the rate no pause is needed, ms.
     * @param nowNanos from the same clock as the origin.
     * @return ms, from 0 to the cap.
     */
    double pauseMs(
            double bytes,
            double bytesPerSecond,
            double capMs,
            double toleranceMs,
            long nowNanos) {
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

    /** How far ahead of its rate all that has landed is now, ms. */
    double aheadMs(long nowNanos) {
        return Math.max(0L, passedAt.get() - (nowNanos - origin)) / NANOS_PER_MS;
    }
}
