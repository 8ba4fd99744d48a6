package throttlesidecar.reading;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * Decides which of several sidecars is asked next: the one that has waited longest, if its waiting time
 * is over.
 *
 * <p>A sidecar that answered waits for {@link #EVERY_MS}. After each failure, a sidecar waits twice as
 * long as before, up to {@link #LONGEST_MS}, so that a sidecar that is back is used soon.
 *
 * <p>Example: one of two sidecars fails each time after 2 s. It waits for 2 s and then for 4 s. In that
 * time the other sidecar is asked once a second.
 */
final class PollingOrder {
    private static final int MOST_DOUBLINGS = 2;

    /** The time from an answer to the next request to the same sidecar, ms. */
    static final long EVERY_MS = 1_000;

    /** The longest waiting time of a sidecar that fails, ms. */
    static final long LONGEST_MS = EVERY_MS << MOST_DOUBLINGS;

    private final long[] dueNanos;
    private final int[] failures;
    private long freeNanos;

    /** At first all sidecars are due; there is at least one. */
    PollingOrder(int count, long nowNanos) {
        dueNanos = new long[count];
        failures = new int[count];
        Arrays.fill(dueNanos, nowNanos);
        freeNanos = nowNanos;
    }

    /** The sidecar to ask next, by its number from 0 on. */
    int next() {
        int first = 0;
        for (int each = 1; each < dueNanos.length; each++) {
            if (dueNanos[each] - dueNanos[first] < 0) {
                first = each;
            }
        }
        return first;
    }

    /** When to ask that sidecar, on the monotonic clock. */
    long dueNanos() {
        long due = dueNanos[next()];
        return due - freeNanos < 0 ? freeNanos : due;
    }

    /** A request to a sidecar has ended. */
    void ended(int number, boolean failed, long nowNanos) {
        failures[number] = failed ? Math.min(failures[number] + 1, MOST_DOUBLINGS) : 0;
        long waitMs = EVERY_MS << failures[number];
        dueNanos[number] = nowNanos + TimeUnit.MILLISECONDS.toNanos(waitMs);
        freeNanos = nowNanos + TimeUnit.MILLISECONDS.toNanos(EVERY_MS);
    }
}
