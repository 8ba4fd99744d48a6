package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Value;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import throttlesidecar.observability.Lines;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.throttling.Canary;
import throttlesidecar.throttling.TagSet;
import throttlesidecar.throttling.TagSets;

/**
 * The throttle times of clients when Kafka's quota manager asks the callback of a broker that reads a
 * sidecar, and the faults that the broker reports if Kafka does not ask as it should.
 */
class KafkaAsksTest extends ReadingBroker {
    private static final String READER = "throttle-reader: broker=7; emergency=false; ";

    private final Lines lines = new Lines();

    /** Starts the broker with a journal that the test reads, and with a result of the self-test. */
    private void start(String selfTestFailure) {
        CallbackRuntime.join(
                () ->
                        new CallbackRuntime(
                                Settings.atStart(configs),
                                7,
                                TagSets.SHARED,
                                Connections.SHARED,
                                RefusalLog.ofBroker(),
                                () -> selfTestFailure,
                                Clocks.SYSTEM,
                                lines));
        // The broker's callback shares the runtime, as the controller's callback would.
        broker.configure(configs);
        CallbackRuntime.leave();
    }

    private boolean hasSaid(String header) {
        return IntStream.range(0, sidecar.heads.size()).anyMatch(sent -> hasHeader(sent, header));
    }

    /** Waits for this number of further answers of the sidecar, each of which is applied. */
    private void awaitAnswers(int more) throws InterruptedException {
        int requests = sidecar.heads.size() + more + 1;
        await(() -> sidecar.heads.size() >= requests);
    }

    private static MetricName rateOf(String user, String clientId) {
        return new MetricName("byte-rate", "Produce", "", TagSet.tagsOf(user, clientId));
    }

    /**
     * Kafka drops the rate of a client that was idle for an hour. The client is still throttled later.
     */
    @Test
    void throttlesAClientThatWasIdleForAnHour() throws Exception {
        factor = "1.0";
        broker.configure(configs);
        await("Source", "SIDECAR");
        for (int request = 0; request < 2; request++) {
            assertEquals(0, produce("app", 1e6));
        }
        metrics.removeSensor("Produce-:app");
        assertNull(TagSets.SHARED.find("", "app"));
        assertEquals(0, produce("app", 1e6));
        factor = "0.0";
        await("FactorApplied", 0.0);

        assertEquals(4000, produce("app", 1e6), 50);
    }

    /**
     * If a volume fills, pauses become longer for all clients, but not those of a user's own throttle.
     */
    @Test
    void aUsersOwnThrottleIsNoEmergency() throws Exception {
        factor = "1.0";
        users = "{\"ann\":0.0}";
        headers = "Throttle-Leak-Share: 0.1\r\nThrottle-Pause-Max-Ms: 40000\r\n";
        start(null);
        await("Generation", users.length() + 1L);
        assertEquals(4000, produce("app", 1e9), 50);
        assertEquals(false, figure("Emergency"));
        assertEquals(0, lines.count("A volume fills"), lines.toString());
        await(() -> hasSaid(READER + "throttled_clients=1"));

        factor = "0.0";
        await("Emergency", true);
        assertEquals(40_000, produce("app", 1e9), 50);
    }

    /** One document throttles 200 of 400 users. The rate of each user is read once or twice. */
    @Test
    void usersThatBeginAtOnceDoNotReadAllRatesEach() throws Exception {
        AtomicInteger reads = new AtomicInteger();
        Measurable counted = (config, nowMs) -> reads.incrementAndGet();
        factor = "1.0";
        broker.configure(configs);
        await("Source", "SIDECAR");
        for (int number = 0; number < 400; number++) {
            metrics.addMetric(
                    rateOf("user" + number, ""),
                    new MetricConfig().quota(Quota.upperBound(Long.MAX_VALUE)), counted);
        }
        users =
                IntStream.range(0, 201)
                        .mapToObj(each -> "\"" + (each == 200 ? "no" : "user" + each) + "\":0.0")
                        .collect(Collectors.joining(",", "{", "}"));
        await("Generation", users.length() + 1L);

        assertEquals(200 + 400, reads.get());
    }

    /** Below the stop line, if nothing can be refused, pauses are as long as in an emergency. */
    @Test
    void theStopLineLengthensPausesWithoutTheAuthorizer() throws Exception {
        more = ",\"stop\":true";
        start(null);
        await("FactorApplied", 0.0);
        assertEquals(300_000, produce("app", 1e6), 50);
        assertEquals(true, figure("Emergency"));
        assertEquals(1, lines.count("A volume fills"), lines.toString());
        reconfigure("refuse.enabled", "false");
        await("Emergency", false);
        assertEquals(4000, produce("app", 1e6), 50);
        reconfigure("refuse.enabled", "true");
        await("Emergency", true);
        Connections.SHARED.authorizers(1);
        try {
            await("Emergency", false);
            assertEquals(4000, produce("app", 1e6), 50);
        } finally {
            Connections.SHARED.authorizers(-1);
        }
    }

    /** If Kafka's sensor does not result in a pause, the fault is reported from the start on. */
    @Test
    void aSelfTestThatFailsIsReported() throws Exception {
        start("no pause");
        await("FactorApplied", 0.0);
        assertEquals("self-test", figure("Fault"));
        assertTrue(hasHeader(0, READER + "throttled_clients=0; fault=self-test"));
        awaitAnswers(2);
        assertEquals(1, lines.count("no pause"), lines.toString());
    }

    /**
     * Without the metrics reporter, Kafka asks for no quotas. The fault is reported until Kafka asks.
     */
    @Test
    void aKafkaThatAsksForNoQuotasIsReported() throws Exception {
        metrics.reporters().clear();
        start(null);
        await("FactorApplied", 0.0);
        for (int request = 0; request < Canary.LEAST; request++) {
            assertEquals("none", figure("Fault"));
            assertEquals(0, produce("app", 1e6));
        }
        assertEquals("not-asked", figure("Fault"));
        await(() -> hasSaid(READER + "throttled_clients=0; fault=not-asked"));
        awaitAnswers(2);
        assertEquals(1, lines.count("100 requests of throttled clients"), lines.toString());

        metrics.addReporter(new SidecarMetricsReporter());
        for (int request = 0; request < Canary.LEAST; request++) {
            produce("app", 1e6);
        }
        assertEquals("none", figure("Fault"));
        await(() -> hasHeader(sidecar.heads.size() - 1, READER + "throttled_clients=1"));
    }

    /** A rate of another type does not keep a request from its answer. The broker reports the error. */
    @Test
    void anErrorEndsNoRequest() throws Exception {
        start(null);
        await("FactorApplied", 0.0);
        Quota own = Quota.upperBound(5000.0);
        metrics.addMetric(rateOf("", "app"), new MetricConfig().quota(own), new Value());

        Map<String, String> tags = broker.quotaMetricTags(ClientQuotaType.PRODUCE, ANN, "app");
        assertEquals(TagSet.tagsOf("", "app"), tags);
        assertEquals("error", figure("Fault"));
        KafkaMetric rate = metrics.metric(rateOf("", "app"));
        assertNotSame(MetricConfig.class, rate.config().getClass());
        assertEquals(own, rate.config().quota());
        await(() -> hasSaid(READER + "throttled_clients=0; fault=error"));
        awaitAnswers(2);
        assertEquals(1, lines.count("ClassCastException"), lines.toString());
    }
}
