package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.PriorityQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A volume that would be full although producers are throttled: simulated in virtual time, with
 * Kafka's own sensors, clients that send one request in each pause, and a sidecar that polls once a
 * second.
 */
class EmergencyTest {
    private static final double HORIZON_S = 600;
    private static final double FULL_SPEED = 6e6;

    private final MovedMoments moments = new MovedMoments();
    private final Rig rig = new Rig(moments);

    /** Producers of one broker, and the volume that they fill. */
    private final class Scene {
        private final PriorityQueue<Long> due = new PriorityQueue<>();
        private final Deque<double[]> readings = new ArrayDeque<>();
        private final double bytes;
        private double landed;
        private double size = Double.POSITIVE_INFINITY;
        private double longest;

        Scene(int connections, double bytes) {
            this.bytes = bytes;
            for (int each = 0; each < connections; each++) {
                due.add(moments.nowMs());
            }
            pass(12, false);
        }

        /** Sets a factor of 0 from now on, with so many bytes left. */
        void stop(double room) {
            room(room);
            rig.enforcement.apply(stopped(Double.NaN));
        }

        void room(double room) {
            size = landed + room;
        }

        double room() {
            return size - landed;
        }

        /** What may leak so that the volume is not full within the horizon, bytes per second. */
        double budget() {
            return room() / HORIZON_S;
        }

        /**
         * Lets time pass and producers send.
         *
         * @param freed whether as much is deleted as lands.
         * @return what has landed, bytes per second.
         */
        double pass(int seconds, boolean freed) {
            double before = landed;
            longest = 0;
            for (int second = 0; second < seconds; second++) {
                double room = room();
                send(1000);
                if (freed) {
                    room(room);
                }
                readings.add(new double[] {moments.nowMs() / 1000.0, landed});
                if (Double.isFinite(size)) {
                    rig.enforcement.apply(stopped(secondsToFull()));
                }
            }
            return (landed - before) / seconds;
        }

        private void send(long millis) {
            long until = moments.nowMs() + millis;
            while (!due.isEmpty() && due.peek() < until) {
                moments.pass(Math.max(0, due.poll() - moments.nowMs()));
                long pause = rig.sensor.throttleMs("", "c", bytes);
                longest = Math.max(longest, pause);
                landed += bytes;
                due.add(moments.nowMs() + Math.max(pause, (long) (bytes / FULL_SPEED * 1000)));
            }
            moments.pass(Math.max(0, until - moments.nowMs()));
        }

        /** A sidecar's reported rate: over the requested window, 5 s at least, or a bit more. */
        private double secondsToFull() {
            double windowS = Math.max(5, rig.enforcement.fillWindowMs() / 1000) * 1.3;
            double[] last = readings.getLast();
            double[] base = readings.getFirst();
            for (double[] reading : readings) {
                if (reading[0] <= last[0] - windowS) {
                    base = reading;
                }
            }
            double rate = (last[1] - base[1]) / (last[0] - base[0]);
            return rate > 0.0 ? Math.max(0.0, room() / rate) : Double.NaN;
        }
    }

    private static Factors stopped(double secondsToFull) {
        return new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1, secondsToFull);
    }

    @ParameterizedTest
    @CsvSource({"3, 1e6, 60e6", "10, 1e6, 200e6", "30, 3e5, 200e6", "100, 1e6, 2e9"})
    void halfAnHourLaterTheVolumeIsNotFull(int connections, double bytes, double room) {
        Scene scene = new Scene(connections, bytes);
        scene.stop(room);
        for (int tenMinutes = 0; tenMinutes < 3; tenMinutes++) {
            scene.pass(180, false);
            double budget = scene.budget();
            double fill = scene.pass(420, false);
            assertTrue(fill <= budget, tenMinutes + ": " + fill + " of " + budget);
            // No more than needed, of pauses that are not the longest: each can't be any longer.
            boolean most = scene.longest >= 299_000;
            assertTrue(most || fill >= 0.2 * budget, tenMinutes + ": " + fill + " of " + budget);
        }
        assertTrue(scene.room() > 0, "left " + scene.room());
    }

    /** If as much is deleted as lands, the budget stays the same, and so does the pause. */
    @ParameterizedTest
    @CsvSource({"3, 1e6, 15e6", "3, 1e6, 60e6", "100, 1e6, 1e9", "300, 2e4, 60e6"})
    void thePauseSettlesWithinTheBudget(int connections, double bytes, double room) {
        Scene scene = new Scene(connections, bytes);
        scene.stop(room);
        scene.pass(1200, true);
        double windowMs = rig.enforcement.fillWindowMs();
        double fill = scene.pass(3600, true);
        assertEquals(windowMs, rig.enforcement.fillWindowMs());
        assertTrue(fill <= scene.budget(), fill + " of " + scene.budget());
        assertTrue(fill >= 0.2 * scene.budget(), fill + " of " + scene.budget());
        assertTrue(scene.longest < 300_000, "longest pause " + scene.longest);
    }

    /** The documented floor: 100 connections, requests of 1 MB, pauses of 300 s: 333 kB/s. */
    @Test
    void whatStillPassesIsARequestOfEachInTheLongestPause() {
        Scene scene = new Scene(100, 1e6);
        scene.stop(50e6);
        scene.pass(1200, true);
        assertEquals(100 * 1e6 / 300, scene.pass(3600, true), 0.02 * 100 * 1e6 / 300);
        assertEquals(300_000, scene.longest, 2);
    }

    @Test
    void whenThereIsRoomAgainPausesAreShortAgain() {
        Scene scene = new Scene(100, 1e6);
        scene.stop(50e6);
        scene.pass(1200, true);
        scene.room(100e9);
        scene.pass(3600, true);
        assertFalse(rig.enforcement.figures().emergency);
        scene.pass(60, true);
        assertEquals(4000, scene.longest, 2);
    }

    /** A scale is judged by a fill rate that began when all had paused by it, and not before. */
    @Test
    void pausesDoNotSwingWithSingleRequests() {
        Scene scene = new Scene(3, 1e6);
        scene.stop(60e6);
        int changes = 0;
        for (int second = 0; second < 1800; second++) {
            double windowMs = rig.enforcement.fillWindowMs();
            scene.pass(1, true);
            changes += rig.enforcement.fillWindowMs() == windowMs ? 0 : 1;
        }
        assertTrue(changes <= 3, changes + " changes");
    }

    /** Below the second line pauses grow to the longest where nothing can be refused. */
    @Test
    void pausesGrowBelowTheSecondLine() {
        Factors stop = new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1, Double.NaN, true);
        Scene scene = new Scene(3, 1e6);
        scene.stop(1e15);
        for (int second = 0; second < 120; second++) {
            moments.pass(1000);
            rig.enforcement.apply(stop);
            assertFalse(rig.enforcement.figures().emergency);
        }
        rig.enforcement.apply(stop.urgent());
        assertTrue(rig.enforcement.figures().emergency);
    }
}
