package throttlesidecar.throttling;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Divides a throttle's leak budget. Each tag set has a share by its rate before the throttle. All tag
 * sets without such a rate, such as clients with random client-ids, have one fair share together.
 *
 * <p>Example: a budget of 90 kB/s, and rates of 6 and 3 MB/s before the throttle. The fair share counts
 * as another 4.5 MB/s, so the two tag sets have 40 and 20 kB/s, and all others together have 30 kB/s.
 */
final class LeakShares {
    private final Map<TagSet, LeakBucket> buckets = new ConcurrentHashMap<>();
    private final LeakBucket others;
    private final long sinceNanos;

    LeakShares(long nowNanos) {
        others = new LeakBucket(nowNanos);
        sinceNanos = nowNanos;
    }

    /** The bucket of a tag set; null stands for a client that never had a tag set. */
    LeakBucket bucket(TagSet tagSet) {
        return hadRate(tagSet)
                ? buckets.computeIfAbsent(tagSet, any -> new LeakBucket(sinceNanos))
                : others;
    }

    /** The part of the budget of a tag set, or of all others together, from 0 to 1. */
    static double part(TagSet tagSet, double rateBefore, double fairShare) {
        if (rateBefore <= 0.0) {
            return 1.0;
        }
        double rate = hadRate(tagSet) ? tagSet.before : fairShare;
        return rate / (rateBefore + fairShare);
    }

    private static boolean hadRate(TagSet tagSet) {
        return tagSet != null && tagSet.before > 0.0;
    }
}
