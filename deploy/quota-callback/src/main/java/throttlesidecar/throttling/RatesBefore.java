package throttlesidecar.throttling;

import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import org.apache.kafka.common.metrics.KafkaMetric;
import throttlesidecar.settings.Settings;

/**
 * The rates of tag sets before a throttle that begins now: as Kafka measured them, except for rates
 * that another throttle influenced.
 */
final class RatesBefore {
    private static final double MS_PER_S = 1000.0;
    private static final double NANOS_PER_MS = 1e6;

    private final TagSets tagSets;
    private final ActiveThrottles old;
    private final Settings settings;
    private final long nanos;
    private final long sinceSetBackMs;
    private final Consumer<Throwable> failed;

    /** Computed at most once, since there may be many tag sets. */
    private Throttle.Before mean;

    /**
     * At first, no rate is measured.
     *
     * @param old the throttles that applied until now.
     * @param sinceSetBackMs how far the wall clock is past the time from which it was set back; below 0
     *     until it has caught up.
     * @param failed receives the error if a rate can't be read.
     */
    RatesBefore(
            TagSets tagSets, ActiveThrottles old, Settings settings, long nanos,
            long sinceSetBackMs, Consumer<Throwable> failed) {
        this.tagSets = tagSets;
        this.old = old;
        this.settings = settings;
        this.nanos = nanos;
        this.sinceSetBackMs = sinceSetBackMs;
        this.failed = failed;
    }

    /** Computed at most once, since many budgets may begin to throttle at the same time. */
    private Throttle.Before whole;

    /** As {@link #measure} for all tag sets, of which it is not known yet which write to an owner. */
    Throttle.Before measureOwner() {
        whole = whole == null ? measure(null) : whole;
        return whole;
    }

    /** Notes the rate of each tag set of a user, or of all for null, and returns their sum. */
    Throttle.Before measure(String user) {
        Throttle.Before sum = sum(user, tagSet -> {
            old.noteBefore(tagSet, rate(tagSet), isNew(tagSet), nanos);
            return tagSet.before;
        });
        // A user without traffic, or with none in its own tag sets, counts with the average of all.
        return sum.tagSets > 0 || user == null ? sum : mean();
    }

    private Throttle.Before mean() {
        if (mean == null) {
            Throttle.Before sum = sum(null, this::rate);
            mean = new Throttle.Before(sum.fairShare(), Math.min(1, sum.tagSets));
        }
        return mean;
    }

    private Throttle.Before sum(String user, ToDoubleFunction<TagSet> rateOf) {
        double[] sum = {0.0};
        int[] tagSetsWithTraffic = {0};
        tagSets.forEach(user, tagSet -> {
            if (tagSet.metric != null && !tagSet.isExcluded(settings)) {
                double rate = rateOf.applyAsDouble(tagSet);
                sum[0] += rate;
                tagSetsWithTraffic[0] += rate > 0.0 ? 1 : 0;
            }
        });
        return new Throttle.Before(sum[0], tagSetsWithTraffic[0]);
    }

    /** Bytes per second; 0, as for a tag set without traffic, if the rate can't be known. */
    private double rate(TagSet tagSet) {
        KafkaMetric metric = tagSet.metric;
        if (metric == null) {
            return 0.0;
        }
        try {
            // The sample that was open when the clock was set back has all bytes until it caught up.
            if (sinceSetBackMs < (metric.config().samples() + 1) * metric.config().timeWindowMs()) {
                return 0.0;
            }
            double rate = (Double) metric.metricValue();
            Long since = tagSet.sinceNanos;
            if (since == null) {
                return rate;
            }
            // Kafka divides by at least the window of all samples but one, which is too long for a new
            // tag set.
            double ageMs = Math.max(MS_PER_S, (nanos - since) / NANOS_PER_MS);
            return rate * Math.max(1.0, leastMs(metric) / ageMs);
        } catch (RuntimeException | LinkageError error) {
            failed.accept(error);
            return 0.0;
        }
    }

    /** Whether the first request came too recently for a whole window. */
    private boolean isNew(TagSet tagSet) {
        Long since = tagSet.sinceNanos;
        KafkaMetric metric = tagSet.metric;
        return since != null && metric != null && (nanos - since) / NANOS_PER_MS < leastMs(metric);
    }

    private static long leastMs(KafkaMetric metric) {
        return (metric.config().samples() - 1) * metric.config().timeWindowMs();
    }
}
