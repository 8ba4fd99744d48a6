package throttlesidecar.throttling;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import throttlesidecar.decision.Factors;
import throttlesidecar.support.MovedClocks;

/**
 * Random brokers on Kafka's own sensors: 1 to 10 tag sets of 1 to 300 connections, requests of 1 B to
 * 100 MB, clients' own quotas, changing factors for all and for single users, threads that read the
 * rates, changing quotas, and a clock that is set. In each case, no pause is longer than the cap or the
 * client's own quota requires. While the factor is 0, no more bytes pass than promised.
 */
class AnyBrokerTest {
    private static final double ROUNDING_MS = 2.0;

    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);
    private final List<TagSetOfClients> all = new ArrayList<>();
    private final PriorityQueue<Connection> due =
            new PriorityQueue<>((a, b) -> Long.compare(a.dueMs, b.dueMs));
    private Random random;
    private double sent;

    private static final class TagSetOfClients {
        private String user;
        private String clientId;
        private double bytes;
        private int connections;
        private double quota = Double.POSITIVE_INFINITY;
    }

    private static final class Connection {
        private TagSetOfClients of;
        private long dueMs;
    }

    private double upTo(double exponent) {
        return Math.pow(10, random.nextDouble() * exponent);
    }

    private void makeClients() {
        for (int each = 1 + random.nextInt(10); each > 0; each--) {
            TagSetOfClients made = new TagSetOfClients();
            made.user = random.nextBoolean() ? "" : "u" + random.nextInt(3);
            made.clientId = "c" + each;
            made.bytes = Math.floor(upTo(8));
            made.connections = (int) upTo(2.5);
            all.add(made);
            change(made);
            for (int number = 0; number < made.connections; number++) {
                Connection connection = new Connection();
                connection.of = made;
                connection.dueMs = clocks.nowMs() + random.nextInt(1000);
                due.add(connection);
            }
        }
    }

    private void change(TagSetOfClients of) {
        boolean limited = random.nextInt(3) == 0;
        of.quota = limited ? of.bytes * of.connections * upTo(2) : Double.POSITIVE_INFINITY;
        rig.quota(of.user, of.clientId, limited ? of.quota : null);
    }

    private void apply(double factor, Map<String, Double> users) {
        rig.enforcement.apply(new Factors(factor, users, Factors.Source.SIDECAR, 1));
    }

    private void sendFor(long millis) {
        long until = clocks.nanos() / 1_000_000 + millis;
        while (clocks.nanos() / 1_000_000 < until) {
            Connection next = due.poll();
            long now = clocks.nanos() / 1_000_000;
            if (next.dueMs > until) {
                due.add(next);
                clocks.pass(until - now);
                return;
            }
            clocks.pass(Math.max(0, next.dueMs - now));
            long pause = send(next.of);
            // The number of requests in a second of traffic is limited, so that the test ends soon.
            long rest = 20 + random.nextInt(20) * (long) next.of.connections;
            next.dueMs = clocks.nanos() / 1_000_000 + Math.max(pause, rest);
            due.add(next);
        }
    }

    private long send(TagSetOfClients of) {
        int pause = rig.sensor.produce(of.user, of.clientId, of.bytes);
        sent += of.bytes;
        KafkaMetric rate = rig.tagSets.find(of.user, of.clientId).metric();
        double observed = (Double) rate.metricValue();
        double ownMs = of.quota == Double.POSITIVE_INFINITY
                ? 0
                : (observed / of.quota - 1) * windowMs(rate);
        assertTrue(pause >= 0, "overflow: " + pause);
        assertTrue(
                pause <= Math.max(rig.pauseMaxMs, ownMs) + ROUNDING_MS,
                () -> pause + " ms, own quota " + ownMs + ", cap " + rig.pauseMaxMs);
        assertTrue(pause >= ownMs - ROUNDING_MS || ownMs < 1, () -> "own quota: " + ownMs);
        return pause;
    }

    private double windowMs(KafkaMetric rate) {
        return ((org.apache.kafka.common.metrics.stats.Rate) rate.measurable())
                .windowSize(rate.config(), clocks.nowMs());
    }

    /** The bytes that all connections land before their first pauses. */
    private double once() {
        return all.stream().mapToDouble(of -> of.bytes * of.connections).sum();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
    void noPauseIsLongerThanTheCapWhateverHappens(int seed) {
        random = new Random(seed);
        rig.pauseMaxMs = 100 + random.nextInt(8000);
        rig.rampMs = random.nextInt(3) * 3000L;
        makeClients();
        for (int step = 0; step < 60; step++) {
            double factor = List.of(0.0, 0.0, 1.0, 0.5, random.nextDouble()).get(random.nextInt(5));
            Map<String, Double> users = random.nextBoolean()
                    ? Map.of()
                    : Map.of("u0", 0.0, "u1", random.nextDouble());
            apply(factor, users);
            change(all.get(random.nextInt(all.size())));
            rig.sensor.metrics().metrics().values().forEach(KafkaMetric::metricValue);
            sendFor(1 + random.nextInt(5000));
            clocks.pass(random.nextInt(8) == 0 ? 15_000 : 0);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
    void noMorePassesThanPromisedWhoeverSends(int seed) {
        random = new Random(seed);
        rig.pauseMaxMs = 500 + random.nextInt(8000);
        rig.leakBytesPerSecond = random.nextBoolean() ? Double.NaN : upTo(7);
        makeClients();
        sendFor(20_000);
        double began = sent;
        sendFor(12_000);
        double before = (sent - began) / 12;
        apply(0.0, Map.of());
        sent = 0;
        sendFor(60_000);
        double budget =
                Double.isNaN(rig.leakBytesPerSecond) ? 0.01 * before * 1.2 : rig.leakBytesPerSecond;
        double promise = Math.max(budget, once() / (rig.pauseMaxMs / 1000.0));
        double leaked = (sent - once()) / 60;
        assertTrue(leaked <= promise * 1.02 + 1, () -> leaked + " of " + promise);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void aClockThatIsSetLengthensNoPause(int seed) {
        random = new Random(seed);
        makeClients();
        all.forEach(of -> rig.quota(of.user, of.clientId, null));
        all.forEach(of -> of.quota = Double.POSITIVE_INFINITY);
        for (int step = 0; step < 60; step++) {
            apply(random.nextInt(3) / 2.0, Map.of());
            sendFor(random.nextInt(2000));
            clocks.stepWall(random.nextInt(60_001) - 30_000L);
        }
    }
}
