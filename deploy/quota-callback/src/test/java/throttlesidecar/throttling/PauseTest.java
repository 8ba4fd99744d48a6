package throttlesidecar.throttling;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import throttlesidecar.decision.Factors;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.MovedClocks;

/**
 * Factor 0 on Kafka's own sensors and rates. No pause is longer than the cap. The rate that passes is at
 * most the leak budget, or the rate that the cap makes inevitable if that is larger.
 */
class PauseTest {
    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);

    private static Factors stopped() {
        return new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1);
    }

    /** Connections that send their next request as soon as their pause is over. */
    private final class Clients {
        private final PriorityQueue<long[]> due =
                new PriorityQueue<>((a, b) -> Long.compare(a[0], b[0]));
        private final double bytes;
        private double landed;
        private long longest;

        Clients(int connections, double bytes) {
            this.bytes = bytes;
            for (int each = 0; each < connections; each++) {
                due.add(new long[] {clocks.nowMs(), each});
            }
        }

        void sendFor(long millis) {
            long until = clocks.nowMs() + millis;
            while (due.peek()[0] < until) {
                long[] next = due.poll();
                clocks.pass(Math.max(0, next[0] - clocks.nowMs()));
                int pause = rig.sensor.produce("", "c", bytes);
                assertTrue(pause >= 0, "no overflow: " + pause);
                longest = Math.max(longest, pause);
                landed += bytes;
                // A round trip takes some time even without a pause.
                due.add(new long[] {clocks.nowMs() + Math.max(pause, 5), next[1]});
            }
            clocks.pass(Math.max(0, until - clocks.nowMs()));
        }
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1", "1, 100000", "1, 1000000", "1, 100000000",
        "3, 20000", "10, 1000000", "100, 1000", "300, 1000000", "1000, 1", "1000, 100000000",
    })
    void noPauseIsLongerThanTheCapWhoeverSharesATagSet(int connections, double bytes) {
        rig.sensor.produce("", "c", 1000);
        clocks.pass(1000);
        rig.enforcement.apply(stopped());
        Clients clients = new Clients(connections, bytes);
        clients.sendFor(60_000);
        assertTrue(clients.longest <= rig.pauseMaxMs + 1, "longest pause " + clients.longest);
    }

    @ParameterizedTest
    @CsvSource({"1, 20000", "3, 20000", "3, 1000000", "100, 10000", "1000, 1", "1000, 100000"})
    void whatPassesIsTheBudgetOrWhatTheCapMakesInevitable(int connections, double bytes) {
        Clients before = new Clients(1, 30_000);
        before.sendFor(30_000);
        rig.enforcement.apply(stopped());
        double budget = 0.01 * before.landed / 30;
        Clients clients = new Clients(connections, bytes);
        clients.sendFor(120_000);
        // Each connection lands one request at the start, before its first pause.
        double perSecond = (clients.landed - connections * bytes) / 120;
        double promise = Math.max(budget, connections * bytes / (rig.pauseMaxMs / 1000.0));
        assertTrue(perSecond <= promise * 1.02 + 1, perSecond + " of " + promise);
    }

    @Test
    void thePauseIsTheShortestWithinTheBudget() {
        Clients before = new Clients(1, 30_000);
        before.sendFor(30_000);
        double budget = 0.01 * before.landed / 30;
        rig.leakBytesPerSecond = budget;
        rig.enforcement.apply(stopped());
        Clients clients = new Clients(2, budget / 4);
        clients.sendFor(60_000);
        assertTrue(clients.longest <= 510, "two requests of a quarter need half a second");
        double perSecond = (clients.landed - budget / 2) / 60;
        assertTrue(perSecond >= budget * 0.9, perSecond + " of " + budget);
    }

    /** A share of an inexact rate needs a margin. */
    @Test
    void aShareOfTheRateBeforeHasAMarginOfATenth() {
        Clients before = new Clients(1, 30_000);
        before.sendFor(30_000);
        rig.enforcement.apply(stopped());
        double budget = 0.01 * before.landed / 30;
        Clients clients = new Clients(2, budget / 4);
        clients.sendFor(60_000);
        double share = (clients.landed - budget / 2) / 60 / budget;
        assertTrue(share > 0.85 && share < 0.92, share + " of the budget");
    }

    @ParameterizedTest
    @ValueSource(doubles = {1, 1e6, 1e8})
    void aTagSetThatAppearsDuringTheThrottleIsThrottledFromItsFirstRequestOn(double bytes) {
        Clients before = new Clients(1, 1000);
        before.sendFor(12_000);
        rig.enforcement.apply(stopped());
        int pause = rig.sensor.produce("new", "comer", bytes);
        double expected = Math.min(rig.pauseMaxMs, bytes / (0.01 * before.landed / 11.9) * 1000);
        assertEquals(expected, pause, Math.max(2, expected * 0.1));
    }

    @Test
    void bytesThatLeaveTheWindowAreNotTakenForBytesThatDidNotLand() {
        Clients before = new Clients(10, 1_000_000);
        before.sendFor(12_000);
        rig.enforcement.apply(stopped());
        // The window loses 11 s of full speed while one small request a second comes.
        for (int second = 0; second < 30; second++) {
            clocks.pass(1000);
            int pause = rig.sensor.produce("", "c", 100_000_000);
            assertTrue(Math.abs(pause - rig.pauseMaxMs) <= 2, second + ": " + pause);
        }
    }

    /**
     * After the clock is set back and a break, Kafka's rate overwrites samples of later times when it
     * opens new ones. Their bytes hide as many bytes of a request, which must still be paced.
     */
    @Test
    void aSampleThatIsOverwrittenHidesNoRequest() {
        rig.leakBytesPerSecond = 1000;
        Clients before = new Clients(1, 1_000_000);
        before.sendFor(12_000);
        clocks.stepWall(-3_600_000);
        rig.sensor.produce("", "c", 1_000_000);
        clocks.pass(12_000);
        rig.enforcement.apply(stopped());
        for (int request = 0; request < 300; request++) {
            clocks.pass(95);
            int pause = rig.sensor.produce("", "c", 1_000_000);
            assertTrue(Math.abs(pause - rig.pauseMaxMs) <= 2, request + ": " + pause);
        }
    }

    /** The same for the first request of a throttle, before which none was counted. */
    @Test
    void aSampleThatIsOverwrittenHidesNoFirstRequest() {
        for (int requests = 0; requests < 12; requests++) {
            MovedClocks moved = new MovedClocks();
            Rig other = new Rig(moved);
            other.leakBytesPerSecond = 1000;
            for (int request = 0; request < 60; request++) {
                moved.pass(400);
                other.sensor.produce("", "c", 1_000_000);
            }
            moved.stepWall(-3_600_000);
            other.sensor.produce("", "c", 1_000_000);
            moved.pass(12_000);
            // Somebody reads the metric, by which Kafka drops the sample of the break.
            other.tagSets.find("", "c").metric().metricValue();
            for (int request = 0; request < requests; request++) {
                moved.pass(400);
                other.sensor.produce("", "c", 1_000_000);
            }
            other.enforcement.apply(stopped());
            moved.pass(400);
            int pause = other.sensor.produce("", "c", 1_000_000);
            assertTrue(Math.abs(pause - other.pauseMaxMs) <= 2, requests + ": " + pause);
        }
    }

    @Test
    void aClockThatIsSetBackOrForthLengthensNoPause() {
        Clients clients = new Clients(3, 1_000_000);
        clients.sendFor(12_000);
        rig.enforcement.apply(stopped());
        Random random = new Random(1);
        for (int step = 0; step < 2000; step++) {
            clocks.stepWall(random.nextInt(20_001) - 10_000L);
            clocks.pass(random.nextInt(500));
            long pause = rig.sensor.throttleMs("", "c", 1 + random.nextInt(1_000_000));
            assertTrue(pause <= rig.pauseMaxMs + 1, step + ": " + pause);
        }
    }

    @Test
    void aClockThatTicksWhileARateIsReadLosesAndAddsNoByte() {
        MovedClocks ticking = new MovedClocks() {
            @Override
            public long nowMs() {
                pass(1);
                return super.nowMs();
            }
        };
        Rig slow = new Rig(ticking);
        slow.leakBytesPerSecond = 1;
        slow.pauseMaxMs = 86_400_000;
        slow.emergencyPauseMaxMs = slow.pauseMaxMs;
        slow.sensor.produce("", "c", 1000);
        slow.enforcement.apply(stopped());
        slow.sensor.produce("", "c", 1000);
        long began = ticking.nanos();
        long ahead = slow.enforcement.figures().pauseInForceMs;
        for (int request = 0; request < 500; request++) {
            slow.sensor.produce("", "c", 100);
        }
        double seconds = (ticking.nanos() - began) / 1e9;
        double more = (slow.enforcement.figures().pauseInForceMs - ahead) / 1000.0;
        assertEquals(50_000, more + seconds, 1.0);
    }

    @Test
    void threadsThatRaceGetNoLongerPauseAndLoseNoByte() throws Exception {
        Clocks real = Clocks.SYSTEM;
        Rig racing = new Rig(real);
        racing.sensor.produce("", "c", 1000);
        racing.pauseMaxMs = 86_400_000;
        racing.emergencyPauseMaxMs = racing.pauseMaxMs;
        racing.leakBytesPerSecond = 1e6;
        racing.enforcement.apply(stopped());
        int threads = 8;
        int each = 20_000;
        AtomicLong longest = new AtomicLong();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        CountDownLatch done = new CountDownLatch(threads);
        long began = real.nanos();
        for (int thread = 0; thread < threads; thread++) {
            pool.execute(() -> {
                for (int request = 0; request < each; request++) {
                    long pause = racing.sensor.throttleMs("", "c", 100_000);
                    longest.accumulateAndGet(pause, Math::max);
                }
                done.countDown();
            });
        }
        assertTrue(done.await(60, TimeUnit.SECONDS));
        pool.shutdown();
        double seconds = (real.nanos() - began) / 1e9;
        // 16 GB must take 16,000 s at 1 MB/s, so lost bytes and bytes counted twice would both show.
        double ahead = racing.enforcement.figures().pauseInForceMs / 1000.0;
        assertEquals(threads * each * 1e5 / 1e6 - seconds, ahead, 1.0);
        assertTrue(longest.get() <= threads * each * 100L + 500, "longest pause " + longest.get());
    }

    /** If Kafka's window ends while a request thread waits for the sensor, the pause is not shorter. */
    @Test
    void thePauseIsWholeWhereAWindowEndsMeanwhile() {
        rig.enforcement.apply(stopped());
        for (int second = 0; second < 20; second++) {
            rig.sensor.produce("", "c", 1000);
            clocks.pass(1000);
        }
        clocks.pass(999);
        rig.whenAsked = () -> {
            clocks.pass(2);
            rig.whenAsked = () -> {};
        };
        assertEquals(rig.pauseMaxMs, rig.sensor.produce("", "c", 1e6), 5);
    }

    /**
     * After the clock is set back, Kafka's windows do not end, and its rates are sums. No budget uses
     * them.
     */
    @Test
    void aStepBackOfTheClockLeaksNoMore() {
        Factors free = new Factors(1.0, Map.of(), Factors.Source.SIDECAR, 1);
        Clients before = new Clients(1, 30_000);
        before.sendFor(30_000);
        rig.enforcement.apply(free);
        clocks.stepWall(-3_600_000);
        Clients after = new Clients(1, 30_000);
        after.sendFor(300_000);
        rig.enforcement.apply(free);
        rig.enforcement.apply(stopped());
        Clients throttled = new Clients(1, 30_000);
        throttled.sendFor(60_000);

        assertTrue(throttled.landed <= 30_000 * (60_000 / rig.pauseMaxMs + 1), "landed");
    }

    /** Nor while the sample that was open then still counts, after the clock has caught up. */
    @Test
    void aClockThatHasCaughtUpLeaksNoMore() {
        Clients before = new Clients(1, 30_000);
        before.sendFor(30_000);
        rig.enforcement.noteClock();
        clocks.stepWall(-600_000);
        rig.enforcement.noteClock();
        Clients after = new Clients(1, 30_000);
        after.sendFor(601_000);
        rig.enforcement.apply(stopped());
        Clients throttled = new Clients(1, 30_000);
        throttled.sendFor(60_000);

        assertTrue(throttled.landed <= 30_000 * (60_000 / rig.pauseMaxMs + 1), "" + throttled.landed);
    }
}
