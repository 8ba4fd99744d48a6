package throttlesidecar.throttling;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.utils.Time;
import throttlesidecar.decision.Factors;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;

/**
 * Tests whether this broker's own classes result in a pause. The test uses a private sensor with a rate
 * and a quota, as Kafka's quota manager makes them, a throttle, and one request of 1 MB.
 */
public final class SelfTest {
    private static final double MS_PER_S = 1000.0;
    private static final double BYTES = 1e6;

    /** No bytes may leak, so that the pause is the longest. */
    private static final Settings SETTINGS = Settings.of(Map.of(Settings.LEAK_BYTES, "0"));

    /** No client has a quota of its own. */
    private static final OwnLimit NO_QUOTAS = new OwnLimit() {
        @Override
        public Double of(String user, String clientId) {
            return null;
        }

        @Override
        public long version() {
            return 0;
        }
    };

    private SelfTest() {}

    /**
     * The fault, for the log; null if the pause is as long as it must be.
     *
     * @param reporter makes a reporter that adds Kafka's rates to the tag sets.
     */
    public static String failure(Function<TagSets, MetricsReporter> reporter) {
        try {
            return run(reporter);
        } catch (RuntimeException | LinkageError error) {
            return error.toString();
        }
    }

    private static String run(Function<TagSets, MetricsReporter> reporter) {
        TagSets tagSets = new TagSets();
        Enforcement enforcement = new Enforcement(tagSets, NO_QUOTAS, () -> SETTINGS, Clocks.SYSTEM);
        tagSets.enforcement(enforcement);
        List<MetricsReporter> reporters = new ArrayList<>(List.of(reporter.apply(tagSets)));
        try (Metrics metrics = new Metrics(new MetricConfig(), reporters, Time.SYSTEM)) {
            Sensor sensor = metrics.sensor("Produce-:self-test");
            sensor.add(
                    metrics.metricName("byte-rate", "Produce", "", TagSet.tagsOf("", "self-test")),
                    new Rate(), new MetricConfig()
                            .timeWindow(1, TimeUnit.SECONDS)
                            .samples(11)
                            .quota(Quota.upperBound(Long.MAX_VALUE)));
            enforcement.apply(new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 0));
            enforcement.beforeRecord(tagSets.find("", "self-test"));
            return violation(sensor);
        }
    }

    private static String violation(Sensor sensor) {
        long nowMs = System.currentTimeMillis();
        try {
            sensor.record(BYTES, nowMs, true);
        } catch (QuotaViolationException violated) {
            Rate rate = (Rate) violated.metric().measurable();
            double windowMs = rate.windowSize(violated.metric().config(), nowMs);
            double pauseMs = (violated.value() / violated.bound() - 1.0) * windowMs;
            // The clock may tick between the record and this line.
            boolean fits = Math.abs(pauseMs - SETTINGS.pauseMaxMs) < MS_PER_S;
            return fits
                    ? null
                    : "a pause of " + pauseMs + " ms instead of " + SETTINGS.pauseMaxMs + " ms";
        }
        return "Kafka's sensor records a request without a pause";
    }
}
