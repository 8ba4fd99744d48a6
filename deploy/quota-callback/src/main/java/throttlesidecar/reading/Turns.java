package throttlesidecar.reading;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * Whose turn it is of several sidecars that are asked one after another: of those that have waited for
 * long enough, that of the one that waits for longest.
 *
 * <p>One that answered waits for {@link #EVERY_MS}, and one that failed for twice as long after each
 * failure, up to {@link #LONGEST_MS}: one that is back counts soon.
 *
 * <p>Example: of two, one of which fails each time after 2 s. It waits for 2 s and then for 4 s, in which
 * the other one is asked once a second.
 */
final class Turns {
    private static final int MOST_DOUBLINGS = 2;

    /** From an answer to the next request of whomever, ms. */
    static final long EVERY_MS = 1_000;

    /** How long one that fails waits at most, ms. */
    static final long LONGEST_MS = EVERY_MS << MOST_DOUBLINGS;

    private final long[] dueNanos;
    private final int[] failures;
    private long freeNanos;

    /** All are due; at least one. */
    Turns(int count, long nowNanos) {
        dueNanos = new long[count];
        failures = new int[count];
        Arrays.fill(dueNanos, nowNanos);
        freeNanos = nowNanos;
    }

    /** Whose turn is next, by its number from 0 on. */
    int next() {
        int first = 0;
        for (int each = 1; each < dueNanos.length; each++) {
            if (dueNanos[each] - dueNanos[first] < 0) {
                first = each;
            }
        }
        return first;
    }

    /** When that is, on the monotonic clock. */
    long dueNanos() {
        long due = dueNanos[next()];
        return due - freeNanos < 0 ? freeNanos : due;
    }

    /** A turn has ended. */
    void ended(int number, boolean failed, long nowNanos) {
        failures[number] = failed ? Math.min(failures[number] + 1, MOST_DOUBLINGS) : 0;
        long waitMs = EVERY_MS << failures[number];
        dueNanos[number] = nowNanos + TimeUnit.MILLISECONDS.toNanos(waitMs);
        freeNanos = nowNanos + TimeUnit.MILLISECONDS.toNanos(EVERY_MS);
    }
}
