package throttlesidecar.throttling;

import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;

/**
 * The configuration of a tag set's rate. It computes the quota when Kafka asks for it.
 *
 * <p>Kafka's sensor records a request, asks the configuration for the quota and compares the rate with
 * it, all under one monitor. So the landed bytes are known when the quota is computed, and Kafka's
 * pause is exact, whatever else lands at the same time. A quota that is set before the record could
 * only be based on an estimate.
 */
final class TagSetConfig extends MetricConfig {
    private final TagSet tagSet;
    private final TagSets tagSets;

    /** Copies Kafka's own configuration, except for the quota. */
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
            // Thrown from here, the error would keep Kafka from sending the answer.
            enforcement.failed(error);
            return super.quota();
        }
    }
}
