package throttlesidecar.throttling;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.Test;
import throttlesidecar.SidecarMetricsReporter;
import throttlesidecar.decision.Factors;
import throttlesidecar.support.MovedClocks;

/** Which of Kafka's metrics are tag sets, and how long they exist. */
class TagSetsTest {
    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);
    private final Metrics metrics = rig.sensor.metrics();

    private KafkaMetric rate() {
        return rig.tagSets.find("ann", "").metric();
    }

    private void add(String name, String group, Map<String, String> tags) {
        metrics.addMetric(metrics.metricName(name, group, tags), (config, now) -> 1.0);
    }

    private static Factors stopped() {
        return new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1);
    }

    /** Noted requests keep no more than the beginning of a client-id, which may have 32 kB. */
    @Test
    void longClientIdsAreCut() {
        KafkaPrincipal ann = new KafkaPrincipal("User", "ann");
        String id = "x".repeat(512);
        assertEquals(new ScopedRequests.Key(ann, id), new ScopedRequests.Key(ann, id + "y"));
        assertNotEquals(new ScopedRequests.Key(ann, id), new ScopedRequests.Key(ann, "y" + id));
    }

    @Test
    void aTagSetLivesAsLongAsKafkasRate() {
        rig.sensor.produce("ann", "", 1000);
        assertNotNull(rig.tagSets.find("ann", ""));
        assertEquals(1, rig.tagSets.size());
        metrics.removeSensor("Produce-ann:");
        assertNull(rig.tagSets.find("ann", ""));
        assertEquals(0, rig.tagSets.size());
    }

    @Test
    void whatComesBackWithinTheSameThrottleIsThrottledFromItsFirstRequestOn() {
        rig.sensor.produce("ann", "", 1000);
        rig.enforcement.apply(stopped());
        assertEquals(4000, rig.sensor.produce("ann", "", 1e8), 1);
        metrics.removeSensor("Produce-ann:");
        clocks.pass(3_600_000);
        assertEquals(4000, rig.sensor.produce("ann", "", 1e6), 1);
    }

    @Test
    void ofTwoReportersTheSecondChangesNothing() {
        rig.sensor.produce("ann", "", 1000);
        TagSet tagSet = rig.tagSets.find("ann", "");
        KafkaMetric rate = rate();
        MetricConfig config = rate.config();
        SidecarMetricsReporter second = new SidecarMetricsReporter(rig.tagSets);
        second.init(List.copyOf(metrics.metrics().values()));
        second.metricChange(rate);
        assertSame(tagSet, rig.tagSets.find("ann", ""));
        assertSame(config, rate.config());
        assertEquals(1, rig.tagSets.size());
    }

    @Test
    void aRemovalThatIsLateDropsNoNewRate() {
        rig.sensor.produce("ann", "", 1000);
        KafkaMetric old = rate();
        metrics.removeSensor("Produce-ann:");
        rig.sensor.produce("ann", "", 1000);
        assertNotSame(old, rate());
        new SidecarMetricsReporter(rig.tagSets).metricRemoval(old);
        assertNotNull(rig.tagSets.find("ann", ""));
    }

    @Test
    void ratesThatWereThereBeforeTheReporterAreThrottledToo() {
        rig.sensor.produce("ann", "", 1e6);
        TagSets late = new TagSets();
        late.enforcement(rig.enforcement);
        new SidecarMetricsReporter(late).init(List.copyOf(metrics.metrics().values()));
        assertEquals(1, late.size());
        assertNotNull(late.find("ann", ""));
    }

    @Test
    void otherMetricsAreNone() {
        add("byte-rate", "Fetch", Map.of("user", "a", "client-id", ""));
        add("throttle-time", "Produce", Map.of("user", "a", "client-id", ""));
        add("byte-rate", "Produce", Map.of("user", "a"));
        assertEquals(0, rig.tagSets.size());
    }

    @Test
    void whatKafkaPutInItsPlaceIsReplacedBeforeTheNextRequest() {
        rig.sensor.produce("ann", "", 1000);
        rig.enforcement.apply(stopped());
        rig.sensor.produce("ann", "", 1e6);
        rate().config(new MetricConfig().samples(11).quota(Quota.upperBound(1.0)));
        assertEquals(4000, rig.sensor.produce("ann", "", 1e6), 1);
        assertInstanceOf(TagSetConfig.class, rate().config());
    }

    @Test
    void withoutACallbackQuotasAreKafkas() {
        rig.quota("ann", "", 5e5);
        rig.sensor.produce("ann", "", 1000);
        rig.tagSets.enforcement(null);
        assertEquals(5e5, rate().config().quota().bound());
    }
}
