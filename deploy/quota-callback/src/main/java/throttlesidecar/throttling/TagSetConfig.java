package throttlesidecar.throttling;

import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;

/**
 * The configuration of a tag set's rate, whose quota is computed when Kafka requests it.
 *
 * <p>Kafka's sensor records a request, then requests the quota from the configuration, then
 * compares the rate with it, all under one monitor. So what has landed is known when the quota is
 * computed, and Kafka's pause is exact, whatever else lands at the same time. A quota set before the
 * record could only estimate it.
 */
final class TagSetConfig extends MetricConfig {
    private final TagSet tagSet;
    private final TagSets tagSets;

    /** Copies Kafka's own, except for the quota. */
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
        if (enforcement == null) {
            return super.quota();
        }
        try {
            return enforcement.quota(tagSet, this);
        } catch (RuntimeException | LinkageError error) {
            // Out of here it would end in the callback that sends the answer: none would be sent.
            enforcement.failed(error);
            return super.quota();
        }
    }
}
