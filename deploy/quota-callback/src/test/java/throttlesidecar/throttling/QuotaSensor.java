package throttlesidecar.throttling;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import throttlesidecar.LoneRuntime;
import throttlesidecar.support.Clocks;

/** Kafka's own sensors of produce quotas, used for throttle times as a broker uses them. */
public final class QuotaSensor {
    private final Metrics metrics;
    private final Clocks clocks;
    private final TagSets tagSets;
    private final Enforcement enforcement;

    public QuotaSensor(Clocks clocks, TagSets tagSets, Enforcement enforcement) {
        this.clocks = clocks;
        this.tagSets = tagSets;
        this.enforcement = enforcement;
        this.metrics = LoneRuntime.metrics(tagSets, clocks);
    }

    public Metrics metrics() {
        return metrics;
    }

    /** The throttle time of a produce request in ms, as Kafka casts it. */
    public int produce(String user, String clientId, double bytes) {
        return (int) throttleMs(user, clientId, bytes);
    }

    /** The throttle time before the cast. */
    public long throttleMs(String user, String clientId, double bytes) {
        long receivedMs = clocks.nowMs();
        enforcement.beforeRecord(tagSets.find(user, clientId));
        Sensor sensor = sensor(user, clientId);
        try {
            sensor.record(bytes, receivedMs, true);
            return 0;
        } catch (QuotaViolationException violated) {
            Rate rate = (Rate) violated.metric().measurable();
            double window = rate.windowSize(violated.metric().config(), receivedMs);
            return Math.round((violated.value() - violated.bound()) / violated.bound() * window);
        }
    }

    private synchronized Sensor sensor(String user, String clientId) {
        Sensor sensor = metrics.sensor("Produce-" + user + ":" + clientId);
        if (!sensor.hasMetrics()) {
            Map<String, String> tags = new LinkedHashMap<>();
            tags.put("user", user);
            tags.put("client-id", clientId);
            Double limit = enforcement.limit(user, clientId);
            sensor.add(
                    metrics.metricName("byte-rate", "Produce", "as Kafka's", tags),
                    new Rate(),
                    new MetricConfig()
                            .timeWindow(1, TimeUnit.SECONDS)
                            .samples(11)
                            .quota(Quota.upperBound(limit == null ? Long.MAX_VALUE : limit)));
        }
        return sensor;
    }
}
