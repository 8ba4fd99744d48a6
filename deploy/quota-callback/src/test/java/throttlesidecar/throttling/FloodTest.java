package throttlesidecar.throttling;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.PriorityQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import throttlesidecar.decision.Factors;
import throttlesidecar.support.MovedClocks;

/**
 * After a release, all clients have a backlog, and Kafka's rate window is empty. The tests compare the
 * bytes that the broker takes in each of the next ten seconds with its rate before the throttle.
 */
class FloodTest {
    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);

    private void apply(double factor) {
        rig.enforcement.apply(new Factors(factor, Map.of(), Factors.Source.SIDECAR, 1));
    }

    /** Clients, each with its own tag set, that send their backlog as fast as their pauses permit. */
    private final class Clients {
        private final PriorityQueue<long[]> due =
                new PriorityQueue<>((a, b) -> Long.compare(a[0], b[0]));
        private final double bytes;
        private final double everyMs;
        private final double[] madeAtMs;

        Clients(int clients, double bytesPerSecond, double bytes) {
            this.bytes = bytes;
            this.everyMs = bytes / bytesPerSecond * 1000;
            this.madeAtMs = new double[clients];
            for (int each = 0; each < clients; each++) {
                madeAtMs[each] = clocks.nowMs() + everyMs * each / clients;
                due.add(new long[] {(long) madeAtMs[each], each});
            }
        }

        /** The rate of all clients together, bytes per second. */
        double send(long millis) {
            long until = clocks.nowMs() + millis;
            double sent = 0;
            while (due.peek()[0] < until) {
                long[] next = due.poll();
                int each = (int) next[1];
                clocks.pass(Math.max(0, next[0] - clocks.nowMs()));
                int pause = rig.sensor.produce("", "c" + each, bytes);
                sent += bytes;
                madeAtMs[each] += everyMs;
                long free = clocks.nowMs() + Math.max(pause, 2);
                due.add(new long[] {Math.max(free, (long) madeAtMs[each]), each});
            }
            clocks.pass(Math.max(0, until - clocks.nowMs()));
            return sent * 1000 / millis;
        }
    }

    @ParameterizedTest
    @CsvSource({
        "1, 6e6, 10000", "1, 6e6, 1000000", "3, 6e6, 300000", "100, 1e5, 10000", "500, 2e4, 5000"
    })
    void noSecondAfterTheReleaseIsFarAboveTheLine(
            int clients, double bytesPerSecond, double bytes) {
        Clients all = new Clients(clients, bytesPerSecond, bytes);
        all.send(20_000);
        double before = all.send(20_000);
        apply(0.0);
        all.send(30_000);
        apply(1.0);
        double sum = 0;
        for (int second = 0; second < 10 + 4; second++) {
            double now = all.send(1000);
            double line = before * (1.25 + second / 60.0);
            // Rates are measured up to a tenth too high, and a second may have one more request at
            // either end.
            assertTrue(now <= 1.1 * line + 2 * bytes, second + ": " + now + " of " + before);
            sum += second < 9 ? 0 : now;
            apply(1.0);
        }
        // By now, the clients' pauses are over.
        assertTrue(sum / 5 >= 0.9 * before, sum / 5 + " of " + before);
        // The rest of the backlog comes faster and faster, and finally without a limit.
        assertTrue(all.send(5000) <= 1.65 * before);
        all.send(4 * rig.rampMs);
        apply(1.0);
        assertEquals(Throttle.Mode.FREE, rig.enforcement.figures().mode);
    }

    @Test
    void aBrokerThatStartedDuringTheThrottleIsBackWithinSecondsAllTheSame() {
        // The broker has measured no rate, and all clients are throttled from their first request on.
        apply(0.0);
        Clients all = new Clients(3, 6e6, 300_000);
        all.send(30_000);
        apply(1.0);
        double first = all.send(1000);
        assertTrue(first <= 3 * 2.5e6, "from a slow start on: " + first);
        all.send(4000);
        apply(1.0);
        double later = all.send(1000);
        assertTrue(later >= 18e6, "to any rate: " + later);
    }

    @Test
    void clientsThatHadJustStartedGetTheirRateBackToo() {
        // Kafka's rate covers ten seconds, and the clients sent for two.
        Clients all = new Clients(3, 2e6, 100_000);
        double before = all.send(2000);
        apply(0.0);
        all.send(10_000);
        apply(1.0);
        all.send(5000);
        double after = all.send(5000);
        // They have a backlog, and the pace is a quarter above their rate and rising.
        assertEquals(1.35 * before, after, 0.1 * before);
    }

    @Test
    void aQuotaIsNoLicenceForABurst() {
        rig.quota("", "c0", 6e6);
        Clients all = new Clients(1, 6e6, 100_000);
        all.send(20_000);
        double before = all.send(20_000);
        apply(0.0);
        all.send(30_000);
        apply(1.0);
        for (int second = 0; second < 10; second++) {
            double now = all.send(1000);
            assertTrue(now <= 1.2 * before + 2e5, second + ": " + now + " of " + before);
            apply(1.0);
        }
    }
}
