package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.KafkaVersion;
import throttlesidecar.support.MovedClocks;

/**
 * With factor 1.0, a broker throttles in the same way with and without the callback. Every scenario runs
 * twice on Kafka's own quota manager, with Kafka's callback and with ours. Tags, quotas and throttle
 * times are the same.
 *
 * <p>There are two differences. Without the callback and any quota, a broker records nothing. With the
 * callback, it makes a sensor for each client, which has a rate by the time the first quota is set. A
 * client whose client-id is null counts as one with an empty client-id; Kafka applies few quotas to it.
 */
class QuotasTest {
    private final MovedClocks clocks = new MovedClocks();
    private final CallbackRuntime runtime = LoneRuntime.of(Settings.of(Map.of()), clocks);
    private final List<KafkaQuotas> made = new ArrayList<>();

    @AfterEach
    void close() {
        made.forEach(KafkaQuotas::close);
    }

    private KafkaQuotas manager(String type, Metrics metrics, ClientQuotaCallback callback) {
        KafkaQuotas manager = new KafkaQuotas(type, metrics, MovedClocks.time(clocks), callback);
        made.add(manager);
        return manager;
    }

    private static Metrics metrics(MovedClocks clocks) {
        return new Metrics(new MetricConfig(), new ArrayList<>(), MovedClocks.time(clocks));
    }

    /** Tags of each rate -> its quota. */
    private static Map<String, Double> bounds(Metrics metrics) {
        Map<String, Double> bounds = new TreeMap<>();
        for (KafkaMetric metric : metrics.metrics().values()) {
            if (metric.metricName().name().equals("byte-rate")) {
                bounds.put(metric.metricName().tags().toString(), metric.config().quota().bound());
            }
        }
        return bounds;
    }

    private static Set<MetricName> names(Metrics metrics) {
        return metrics.metrics().keySet();
    }

    private static final KafkaPrincipal ANN = new KafkaPrincipal("User", "ann");
    private static final KafkaPrincipal ODD = new KafkaPrincipal("User", "CN=a b*,O=ü+%");
    private static final String[] IDS = {"etl", "web", "a:b c*\"", "none", ""};

    /** Scenarios: user, client-id and quota of each step; null for no such part, "" for default. */
    static List<Object[]> scenarios() {
        List<Object[]> all = new ArrayList<>();
        Object[][] levels = {
            {"ann", "etl", 1000.0}, {"ann", "", 2000.0}, {"ann", null, 3000.0}, {"", "etl", 4000.0},
            {"", "", 5000.0}, {"", null, 6000.0}, {null, "etl", 7000.0}, {null, "", 8000.0},
        };
        for (String type : List.of("Produce", "Fetch", "Request", "ControllerMutation")) {
            all.add(new Object[] {type, "no quota", List.of()});
            List<Object[]> strictest = new ArrayList<>();
            for (int level = 0; level < 8; level++) {
                String name = "level " + (level + 1);
                Object[] removed = {levels[level][0], levels[level][1], null};
                Object[] doubled = {levels[level][0], levels[level][1], 2 * (Double) levels[level][2]};
                all.add(new Object[] {
                    type, name + " alone, changed, removed, set again",
                    List.of(levels[level], doubled, removed, levels[level])
                });
                strictest.add(levels[7 - level]);
                all.add(new Object[] {
                    type, "down to " + (8 - level) + " and back", List.copyOf(strictest)
                });
            }
            List<Object[]> away = new ArrayList<>(strictest);
            for (int level = 0; level < 8; level++) {
                away.add(new Object[] {levels[level][0], levels[level][1], null});
            }
            all.add(new Object[] {type, "all set, then removed from the strictest on", away});
            all.add(new Object[] {
                type, "sanitised names",
                List.of(
                        new Object[] {ODD.getName(), null, 1000.0},
                        new Object[] {ODD.getName(), "a:b c*\"", 500.0},
                        new Object[] {null, "a:b c*\"", 700.0})
            });
            all.add(new Object[] {
                type, "who is not authenticated",
                List.of(new Object[] {"ANONYMOUS", null, 1000.0}, new Object[] {"", "web", 10.0})
            });
            all.add(new Object[] {
                type, "removed before it was set",
                List.of(new Object[] {"ann", null, null}, new Object[] {null, "etl", 1000.0})
            });
        }
        return all;
    }

    @ParameterizedTest(name = "{0}: {1}")
    @MethodSource("scenarios")
    void everyScenarioIsTheSameWithAndWithoutTheCallback(
            String type, String name, List<Object[]> steps) {
        Metrics bareMetrics = metrics(clocks);
        Metrics ourMetrics = metrics(clocks);
        ourMetrics.addReporter(new SidecarMetricsReporter(runtime.tagSets));
        KafkaQuotas bare = manager(type, bareMetrics, null);
        KafkaQuotas ours = manager(type, ourMetrics, new SidecarQuotaCallback(runtime));
        Random random = new Random(7);
        compare(bare, ours, bareMetrics, ourMetrics, random);
        for (Object[] step : steps) {
            for (KafkaQuotas each : List.of(bare, ours)) {
                each.set((String) step[0], (String) step[1], (Double) step[2]);
            }
            compare(bare, ours, bareMetrics, ourMetrics, random);
        }
    }

    /** While nobody has a quota of a type, a client costs no metrics, as without the callback. */
    @ParameterizedTest
    @ValueSource(strings = {"Fetch", "Request", "ControllerMutation"})
    void aTypeWithoutQuotasHasFewMetrics(String type) {
        Metrics metrics = metrics(clocks);
        KafkaQuotas ours = manager(type, metrics, new SidecarQuotaCallback(runtime));
        // Earlier versions count a kind of quota until a restart.
        boolean forgets = KafkaVersion.forgetsRemovedKinds(KafkaVersion.read());
        for (String state : forgets ? List.of("never", "a quota", "removed") : List.of("never")) {
            if (!state.equals("never")) {
                ours.set("ann", null, state.equals("a quota") ? 1000.0 : null);
            }
            int before = names(metrics).size();
            for (int client = 0; client < 500; client++) {
                ours.record(ANN, state + client, 1.0, clocks.nowMs());
                ours.record(KafkaPrincipal.ANONYMOUS, state + client, 1.0, clocks.nowMs());
            }
            assertTrue(names(metrics).size() - before <= 100, state);
        }
    }

    private void compare(
            KafkaQuotas bare, KafkaQuotas ours, Metrics bareMetrics, Metrics ourMetrics, Random random) {
        // Without any quota, requests are recorded with ours only.
        for (int round = 0; bare.enabled() && round < 20; round++) {
            for (KafkaPrincipal principal : List.of(ANN, ODD, KafkaPrincipal.ANONYMOUS)) {
                for (String id : IDS) {
                    double value = random.nextInt(3000);
                    int expected = bare.record(principal, id, value, clocks.nowMs());
                    int actual = ours.record(principal, id, value, clocks.nowMs());
                    assertEquals(expected, actual, principal + " " + id);
                }
            }
            clocks.pass(random.nextInt(400));
        }
        assertEquals(names(bareMetrics), names(ourMetrics));
        assertEquals(bounds(bareMetrics), bounds(ourMetrics));
    }
}
