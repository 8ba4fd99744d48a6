package throttlesidecar;

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

/**
 * Whether a pause comes out of this broker's own classes: a private sensor with a rate and a quota,
 * as Kafka's quota manager makes them, a throttle, and one request of 1 MB.
 */
final class SelfTest implements Enforcement.Limits, OwnLimit {
    private static final double MS_PER_S = 1000.0;
    private static final double BYTES = 1e6;

    private SelfTest() {}

    /** What is wrong, for the log; null: the pause is as long as it must be. */
    static String failure() {
        return failure(SidecarMetricsReporter::new);
    }

    /** The same with another reporter of Kafka's rates, which tells these tag sets of them. */
    static String failure(Function<TagSets, MetricsReporter> reporter) {
        try {
            return new SelfTest().run(reporter);
        } catch (RuntimeException | LinkageError error) {
            return error.toString();
        }
    }

    private String run(Function<TagSets, MetricsReporter> reporter) {
        TagSets tagSets = new TagSets();
        Enforcement enforcement =
                new Enforcement(tagSets, this, () -> this, Moments.SYSTEM);
        tagSets.enforcement(enforcement);
        List<MetricsReporter> reporters = new ArrayList<>(List.of(reporter.apply(tagSets)));
        try (Metrics metrics = new Metrics(new MetricConfig(), reporters, Time.SYSTEM)) {
            Sensor sensor = metrics.sensor("Produce-:self-test");
            sensor.add(
                    metrics.metricName("byte-rate", "Produce", "", QuotaBook.tagsOf("", "self-test")),
                    new Rate(),
                    new MetricConfig()
                            .timeWindow(1, TimeUnit.SECONDS)
                            .samples(11)
                            .quota(Quota.upperBound(Long.MAX_VALUE)));
            enforcement.apply(new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 0));
            enforcement.beforeRecord(tagSets.find("", "self-test"));
            return violation(sensor);
        }
    }

    private String violation(Sensor sensor) {
        long nowMs = System.currentTimeMillis();
        try {
            sensor.record(BYTES, nowMs, true);
        } catch (QuotaViolationException violated) {
            Rate rate = (Rate) violated.metric().measurable();
            double windowMs = rate.windowSize(violated.metric().config(), nowMs);
            double pauseMs = (violated.value() / violated.bound() - 1.0) * windowMs;
            // The clock may tick between the two.
            boolean fits = Math.abs(pauseMs - pauseMaxMs()) < MS_PER_S;
            return fits ? null : "a pause of " + pauseMs + " ms in place of " + pauseMaxMs();
        }
        return "Kafka's sensor records a request without a pause";
    }

    @Override
    public Double of(String user, String clientId) {
        return null;
    }

    @Override
    public long version() {
        return 0;
    }

    @Override
    public long pauseMaxMs() {
        return 4000;
    }

    @Override
    public long emergencyPauseMaxMs() {
        return pauseMaxMs();
    }

    @Override
    public double leakRatio() {
        return 0.0;
    }

    @Override
    public double leakBytesPerSecond() {
        return Double.NaN;
    }

    @Override
    public long rampMs() {
        return 0;
    }

    @Override
    public boolean excludes(String user, String clientId) {
        return false;
    }
}
