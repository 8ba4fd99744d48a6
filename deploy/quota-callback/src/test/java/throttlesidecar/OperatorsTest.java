package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Factors;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.TagSets;

/**
 * An operator changes quotas during a throttle. Kafka's own manager then visits all rates, on another
 * thread than the requests and without the sensors' monitors. It compares the quota of each rate with
 * the callback's limit, and replaces quotas that differ.
 */
class OperatorsTest {
    private static final KafkaPrincipal ANN = new KafkaPrincipal("User", "ann");
    private static final Factors THROTTLED = new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1);

    private final MovedClocks moved = new MovedClocks();
    private final Settings settings = Settings.of(Map.of());
    private TagSets tagSets;
    private Enforcement enforcement;
    private KafkaQuotas manager;

    private void start(Clocks clocks) {
        CallbackRuntime runtime = LoneRuntime.of(settings, clocks);
        tagSets = runtime.tagSets;
        enforcement = runtime.enforcement;
        manager = LoneRuntime.kafka(runtime, clocks);
    }

    @AfterEach
    void close() {
        manager.close();
    }

    @Test
    void kafkaFindsNothingToReplaceAndTheNextPauseIsExact() {
        start(moved);
        manager.set("ann", null, 1e6);
        manager.record(ANN, "etl", 1e6, moved.nowMs());
        moved.pass(12_000);
        enforcement.apply(THROTTLED);
        assertEquals(4000, manager.record(ANN, "etl", 1e6, moved.nowMs()), 1);
        KafkaMetric rate = tagSets.find("ann", "").metric();
        MetricConfig ours = rate.config();
        assertNotSame(MetricConfig.class, ours.getClass());
        moved.pass(5000);
        manager.set("bob", null, 5e6);
        assertSame(ours, rate.config(), "the quota of another client changed");
        manager.set("ann", null, 2e6);
        assertSame(ours, rate.config(), "the client's own quota changed");
        assertEquals(4000, manager.record(ANN, "etl", 1e6, moved.nowMs()), 1);
        enforcement.apply(Factors.DISABLED);
        assertEquals(2e6, rate.config().quota().bound());
    }

    @Test
    void theComparisonTakesNoRequestsBytes() {
        start(moved);
        manager.set("ann", null, 1e9);
        manager.record(ANN, "etl", 1e6, moved.nowMs());
        enforcement.apply(THROTTLED);
        manager.record(ANN, "etl", 1.0, moved.nowMs());
        long ahead = enforcement.figures().pauseInForceMs;
        for (int change = 0; change < 10; change++) {
            manager.set("bob", null, 5e6 + change);
        }
        assertEquals(ahead, enforcement.figures().pauseInForceMs);
    }

    @Test
    void noPauseIsLongerForRequestsThatRaceWithChanges() throws Exception {
        start(Clocks.SYSTEM);
        Random sizes = new Random(1);
        List<String> ids = List.of("a", "b", "c", "d");
        manager.set(null, "e", 1.0);
        ids.forEach(id -> manager.record(ANN, id, 1000, System.currentTimeMillis()));
        enforcement.apply(THROTTLED);
        AtomicBoolean ended = new AtomicBoolean();
        int replaced = 0;
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> longest = new ArrayList<>();
        for (int thread = 0; thread < 3; thread++) {
            long seed = sizes.nextLong();
            longest.add(pool.submit(() -> {
                Random random = new Random(seed);
                int most = 0;
                while (!ended.get()) {
                    double bytes = Math.pow(10, random.nextDouble() * 8);
                    String id = ids.get(random.nextInt(ids.size()));
                    int pause = manager.record(ANN, id, bytes, System.currentTimeMillis());
                    assertTrue(pause >= 0, "overflow: " + pause);
                    most = Math.max(most, pause);
                }
                return most;
            }));
        }
        for (int change = 0; change < 3000; change++) {
            manager.set("bob", null, 1e6 + change);
            // A replaced quota would apply until the next request, although it was computed for another
            // sum in the window.
            for (String id : ids) {
                replaced += tagSets.find("", id).metric().config().getClass() == MetricConfig.class ? 1 : 0;
            }
        }
        ended.set(true);
        pool.shutdown();
        for (Future<Integer> each : longest) {
            int pause = each.get(10, TimeUnit.SECONDS);
            assertTrue(pause <= settings.pauseMaxMs + 1000, "longest pause " + pause);
        }
        assertEquals(0, replaced);
    }
}
