package throttlesidecar;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import throttlesidecar.throttling.TagSets;

/**
 * Passes the rates that Kafka measures to the callback, and sends them nowhere else. The broker's
 * {@code metric.reporters} must name this class beside {@code
 * org.apache.kafka.common.metrics.JmxReporter}.
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
        // It has no settings.
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
        // The rates stay valid without this reporter.
    }
}
