package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import javax.management.ObjectName;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import throttlesidecar.reading.RawServer;

/** A broker's callback, Kafka's own quota manager, and a sidecar whose answers a test changes. */
abstract class ReadingBroker {
    static final String P = "client.quota.callback.sidecar.";
    static final KafkaPrincipal ANN = new KafkaPrincipal("User", "ann");

    final SidecarQuotaCallback broker = new SidecarQuotaCallback();
    final Map<String, Object> configs = new HashMap<>();
    final Metrics metrics =
            new Metrics(
                    new MetricConfig(), new ArrayList<>(List.of(new SidecarMetricsReporter())),
                    Time.SYSTEM);
    volatile String factor = "0.0";
    volatile String users = "{}";
    volatile String more = "";

    /** The headers of each answer, with their line ends. */
    volatile String headers = "";

    RawServer sidecar;
    private KafkaQuotas quotas;

    @BeforeEach
    void configs() throws Exception {
        sidecar =
                new RawServer(
                        (head, out) -> {
                            boolean known = head.stream().anyMatch(line -> line.endsWith(tag()));
                            if (known) {
                                Thread.sleep(300);
                            }
                            out.write(answer());
                        });
        configs.put("process.roles", "broker,controller");
        configs.put("node.id", "7");
        configs.put(
                "metric.reporters",
                "org.apache.kafka.common.metrics.JmxReporter,"
                        + "throttlesidecar.SidecarMetricsReporter");
        configs.put(P + "url", sidecar.url().toString());
    }

    private String tag() {
        return "\"" + factor + "-" + users.length() + "\"";
    }

    private byte[] answer() {
        String body =
                String.format(
                        "{\"factor\":%s,\"users\":%s,\"generation\":%d,\"valid_for_ms\":60000%s}",
                        factor, users, users.length() + 1, more);
        return RawServer.http("200 OK", "ETag: " + tag() + "\r\n" + headers, body);
    }

    @AfterEach
    void close() throws Exception {
        broker.close();
        sidecar.close();
        if (quotas != null) {
            quotas.close();
        }
        // The next test uses the JVM's tag sets too.
        metrics.metrics().keySet().forEach(metrics::removeMetric);
        metrics.close();
        assertEquals(0, followers());
    }

    /** Charges a produce request of ann, and returns its throttle time, ms. */
    int produce(String clientId, double bytes) {
        if (quotas == null) {
            quotas = new KafkaQuotas("Produce", metrics, Time.SYSTEM, broker);
        }
        return quotas.record(ANN, clientId, bytes, System.currentTimeMillis());
    }

    /** Whether a request to the sidecar, from 0 on, had a header, in lower case. */
    boolean hasHeader(int request, String header) {
        return sidecar.heads.get(request).stream()
                .map(line -> line.toLowerCase(Locale.ROOT))
                .anyMatch(header::equals);
    }

    void reconfigure(String key, String value) {
        configs.put(P + key, value);
        broker.validateReconfiguration(configs);
        broker.reconfigure(configs);
    }

    static Object figure(String name) throws Exception {
        return ManagementFactory.getPlatformMBeanServer()
                .getAttribute(new ObjectName("throttlesidecar:type=QuotaCallback"), name);
    }

    static void await(String name, Object expected) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (!expected.equals(figure(name)) && System.nanoTime() < deadline) {
            Thread.sleep(5);
        }
        assertEquals(expected, figure(name));
    }

    static void await(BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (!condition.getAsBoolean() && System.nanoTime() < deadline) {
            Thread.sleep(5);
        }
        assertTrue(condition.getAsBoolean());
    }

    static long followers() {
        return threads("throttle-sidecar-reader");
    }

    static long threads(String name) {
        return Stream.of(Thread.getAllStackTraces().keySet().toArray(new Thread[0]))
                .filter(thread -> thread.getName().equals(name))
                .filter(Thread::isAlive)
                .count();
    }
}
