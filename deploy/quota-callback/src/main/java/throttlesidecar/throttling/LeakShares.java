package throttlesidecar.throttling;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How a throttle's leak budget is divided: each tag set has a share by its rate before, and all that
 * had none then, such as clients with random client-ids, have one fair share together.
 *
 * <p>Example: a budget of 90 kB/s, and rates before of 6 and 3 MB/s: the fair share counts as
 * 4.5 MB/s more, so that the two have 40 and 20 kB/s, and all others together 30.
 */
final class LeakShares {
    private final Map<TagSet, LeakBucket> buckets = new ConcurrentHashMap<>();
    private final LeakBucket others;
    private final long sinceNanos;

    LeakShares(long nowNanos) {
        others = new LeakBucket(nowNanos);
        sinceNanos = nowNanos;
    }

    /** The bucket of a tag set; null: of a client that never had one. */
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
        double rate = hadRate(tagSet) ? tagSet.before() : fairShare;
        return rate / (rateBefore + fairShare);
    }

    private static boolean hadRate(TagSet tagSet) {
        return tagSet != null && tagSet.before() > 0.0;
    }
}
