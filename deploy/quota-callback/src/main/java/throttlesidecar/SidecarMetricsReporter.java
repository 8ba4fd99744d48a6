package throttlesidecar;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import throttlesidecar.throttling.TagSets;

/**
 * Passes the rates that Kafka measures to the callback: the broker's {@code metric.reporters} must
 * name it beside {@code org.apache.kafka.common.metrics.JmxReporter}. It sends them nowhere else.
 */
public final class SidecarMetricsReporter implements MetricsReporter {
    private final TagSets tagSets;

    /** For Kafka. */
    public SidecarMetricsReporter() {
        this(TagSets.SHARED);
    }

    public SidecarMetricsReporter(TagSets tagSets) {
        this.tagSets = tagSets;
    }

    @Override
    public void configure(Map<String, ?> configs) {
        // Its settings are the callback's.
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
        metrics.forEach(metric -> tagSets.add(metric, false));
    }

    @Override
    public void metricChange(KafkaMetric metric) {
        tagSets.add(metric, true);
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        tagSets.remove(metric);
    }

    @Override
    public void close() {
        // The rates stay valid without it.
    }
}
