package throttlesidecar.throttling;

import java.util.function.Consumer;
import org.apache.kafka.common.metrics.KafkaMetric;
import throttlesidecar.settings.Settings;

/**
 * The rates of tag sets before a throttle that begins now: as Kafka measured them, but for those that
 * another throttle shaped.
 */
final class RatesBefore {
    private static final double MS_PER_S = 1000.0;
    private static final double NANOS_PER_MS = 1e6;

    private final TagSets tagSets;
    private final ActiveThrottles state;
    private final Settings limits;
    private final long nanos;
    private final boolean known;
    private final Consumer<Throwable> failed;

    /** Of all tag sets with traffic, computed at most once, since there may be many. */
    private Throttle.Before mean;

    /**
     * Measures nothing yet.
     *
     * @param tagSets whose rates they are.
     * @param state what was in force until now.
     * @param limits by which clients are excluded.
     * @param nanos now, on the monotonic clock.
     * @param known whether Kafka's windows say anything now: else no tag set had traffic.
     * @param failed gets what a rate could not be read for.
     */
    RatesBefore(
            TagSets tagSets,
            ActiveThrottles state,
            Settings limits,
            long nanos,
            boolean known,
            Consumer<Throwable> failed) {
        this.tagSets = tagSets;
        this.state = state;
        this.limits = limits;
        this.nanos = nanos;
        this.known = known;
        this.failed = failed;
    }

    /** Notes the rate of each tag set of a user, or of all for null, and returns their sum. */
    Throttle.Before measure(String user) {
        Sum group = new Sum();
        tagSets.forEach(user, tagSet -> {
            KafkaMetric metric = tagSet.metric();
            if (metric != null && !tagSet.isExcluded(limits)) {
                double before = state.before(tagSet, rate(tagSet, metric), nanos);
                tagSet.before(before);
                group.add(before);
            }
        });
        // A user that had no traffic, or none in its own tag sets, counts with the mean of all.
        return group.sets > 0 || user == null ? new Throttle.Before(group.rate, group.sets) : mean();
    }

    private Throttle.Before mean() {
        if (mean == null) {
            Sum all = new Sum();
            tagSets.forEach(null, tagSet -> {
                KafkaMetric metric = tagSet.metric();
                if (metric != null && !tagSet.isExcluded(limits)) {
                    all.add(rate(tagSet, metric));
                }
            });
            mean = new Throttle.Before(all.rate / Math.max(1, all.sets), Math.min(1, all.sets));
        }
        return mean;
    }

    /** Bytes per second; 0, as of a tag set without traffic, where it can't be known. */
    private double rate(TagSet tagSet, KafkaMetric metric) {
        if (!known) {
            return 0.0;
        }
        try {
            return wholeRate(tagSet, metric);
        } catch (RuntimeException | LinkageError error) {
            failed.accept(error);
            return 0.0;
        }
    }

    /** Kafka divides by a window of all samples but one at least: too much for a young tag set. */
    private double wholeRate(TagSet tagSet, KafkaMetric metric) {
        double rate = (Double) metric.metricValue();
        Long since = tagSet.sinceNanos();
        if (since == null) {
            return rate;
        }
        double ageMs = Math.max(MS_PER_S, (nanos - since) / NANOS_PER_MS);
        long leastMs = (metric.config().samples() - 1) * metric.config().timeWindowMs();
        return rate * Math.max(1.0, leastMs / ageMs);
    }

    /** The sum of rates of tag sets, bytes per second, and how many are not 0. */
    private static final class Sum {
        private double rate;
        private int sets;

        void add(double more) {
            rate += more;
            sets += more > 0.0 ? 1 : 0;
        }
    }
}
