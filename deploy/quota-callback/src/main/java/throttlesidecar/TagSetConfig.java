package throttlesidecar;

import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;

/**
 * The configuration of a tag set's rate, whose quota is computed when Kafka asks for it.
 *
 * <p>Kafka's sensor records a request, then asks the configuration for the quota, then holds the
 * rate against it, all under one monitor. So what has landed is known when the quota is given, and
 * the pause that Kafka computes from the two is the one that was meant, whatever else lands at the
 * same time. A quota that were set before the record would have to guess it.
 */
final class TagSetConfig extends MetricConfig {
    private final TagSet tagSet;
    private final TagSets tagSets;

    /** As the plain one that Kafka made, but for the quota. */
    TagSetConfig(MetricConfig plain, TagSet tagSet, TagSets tagSets) {
        this.tagSet = tagSet;
        this.tagSets = tagSets;
        quota(plain.quota());
        samples(plain.samples());
        timeWindow(plain.timeWindowMs(), TimeUnit.MILLISECONDS);
        eventWindow(plain.eventWindow());
        recordLevel(plain.recordLevel());
        tags(plain.tags());
    }

    @Override
    public Quota quota() {
        // Null also while the constructor of the superclass runs.
        Enforcement enforcement = tagSets == null ? null : tagSets.enforcement();
        return enforcement == null ? super.quota() : enforcement.quota(tagSet, this);
    }
}
