package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.management.ObjectName;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.reading.RawServer;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.throttling.TagSets;

/** On a dedicated controller the callback is off, and Kafka's own quotas apply. */
class DedicatedControllerTest {
    private static final String P = "client.quota.callback.sidecar.";
    private static final KafkaPrincipal ANN = new KafkaPrincipal("User", "ann");

    private final SidecarQuotaCallback controller = new SidecarQuotaCallback();
    private final SidecarQuotaCallback broker = new SidecarQuotaCallback();
    private final Map<String, Object> configs = new HashMap<>();
    private RawServer sidecar;

    @BeforeEach
    void configs() throws Exception {
        sidecar = new RawServer((head, out) -> out.write(RawServer.http("200 OK", "", "{}")));
        configs.put("process.roles", "controller");
        configs.put("node.id", "100");
        configs.put(
                "metric.reporters",
                "org.apache.kafka.common.metrics.JmxReporter,"
                        + "throttlesidecar.SidecarMetricsReporter");
        configs.put(P + "url", sidecar.url().toString());
    }

    @AfterEach
    void close() throws Exception {
        controller.close();
        broker.close();
        sidecar.close();
    }

    private static long followers() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("throttle-sidecar-reader"))
                .filter(Thread::isAlive)
                .count();
    }

    private static boolean isInJmx() throws Exception {
        return ManagementFactory.getPlatformMBeanServer()
                .isRegistered(new ObjectName("throttlesidecar:type=QuotaCallback"));
    }

    /**
     * No request goes to the sidecar, and settings that a broker would refuse do not stop a controller.
     */
    @Test
    void isOff() throws Exception {
        configs.remove("metric.reporters");
        configs.put(P + "fallbck", "7");
        configs.put(P + "pause.max.ms", "4s");
        controller.configure(configs);

        assertEquals(0, followers());
        assertFalse(isInJmx());
        assertNull(TagSets.SHARED.enforcement());
        assertEquals(0, sidecar.heads.size());
    }

    /**
     * Kafka's own manager charges controller mutations in the same way with and without the callback.
     */
    @Test
    void chargesMutationsAsKafkasOwn() {
        MovedClocks clocks = new MovedClocks();
        configs.put(P + "request", "1");
        configs.put(P + "excluded.principals", "User:ann");
        controller.configure(configs);
        try (KafkaQuotas bare = quotas(clocks, null);
                KafkaQuotas ours = quotas(clocks, controller)) {
            List<Integer> waits = new ArrayList<>();
            for (KafkaQuotas each : List.of(bare, ours)) {
                each.set("", null, 3.0);
                each.set(null, "etl", 1.0);
                clocks.pass(1000);
                for (String id : List.of("app", "etl", "app")) {
                    waits.add(each.record(ANN, id, 50.0, clocks.nowMs()));
                }
            }

            assertEquals(waits.subList(0, 3), waits.subList(3, 6));
            assertTrue(waits.get(0) > 0, waits.toString());
        }
    }

    private static KafkaQuotas quotas(MovedClocks clocks, SidecarQuotaCallback callback) {
        Metrics metrics =
                new Metrics(new MetricConfig(), new ArrayList<>(), MovedClocks.time(clocks));
        return new KafkaQuotas("ControllerMutation", metrics, MovedClocks.time(clocks), callback);
    }

    /**
     * A change for brokers reaches the controller too. The controller neither refuses nor applies it.
     */
    @Test
    void staysOff() {
        controller.configure(configs);
        configs.put(P + "enabled", "true");
        configs.put(P + "request", "1");
        configs.put(P + "url", "https://sidecar:7070");
        configs.put(P + "ssl.ca.file", "/only/on/brokers.pem");
        controller.validateReconfiguration(configs);
        controller.reconfigure(configs);

        assertEquals(0, followers());
        for (ClientQuotaType type : ClientQuotaType.values()) {
            assertFalse(controller.quotaResetRequired(type));
            Map<String, String> tags = controller.quotaMetricTags(type, ANN, "app");
            assertEquals(type == ClientQuotaType.PRODUCE ? "" : "(no quota)", tags.get("user"));
        }
    }

    /** A broker in the same JVM has its own runtime, even if the controller ends first. */
    @Test
    void sharesNoStoreWithABroker() throws Exception {
        controller.configure(configs);
        configs.put("process.roles", "broker");
        broker.configure(configs);
        controller.close();

        assertEquals(1, followers());
        assertTrue(isInJmx());
        broker.close();
        assertEquals(0, followers());
    }
}
