package throttlesidecar.throttling;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.support.MovedClocks;

/** The bytes that a broker lets through and the length of its pauses, as the sidecar decides. */
class LeakTest {
    private static final double REQUEST = 100_000;

    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);

    private void stop(double share, long pauseMaxMs) {
        rig.enforcement.apply(stopped(new Leak(share, pauseMaxMs)));
    }

    private static Factors stopped(Leak leak) {
        return new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1, leak, false, false, Scope.ALL);
    }

    private int pause(double bytes) {
        return rig.sensor.produce("", "c", bytes);
    }

    @ParameterizedTest
    @CsvSource({"1.0, 1000", "0.25, 4000", "0.1, 10000", "0.0001, 300000"})
    void theShareIsOfTheBudget(double share, int pauseMs) {
        rig.leakBytesPerSecond = 100_000;
        stop(share, 300_000);
        assertEquals(pauseMs, pause(REQUEST), 0.003 * pauseMs);
    }

    @ParameterizedTest
    @CsvSource({"3000, 4000", "40000, 40000", "300001, 300000"})
    void noPauseIsLongerThanItSays(long pauseMaxMs, int pauseMs) {
        stop(0.1, pauseMaxMs);
        assertEquals(pauseMs, pause(1e9), 5);
    }

    /** The leak changes while clients are throttled, without another document. */
    @Test
    void theNextPauseIsByTheLastWord() {
        rig.leakBytesPerSecond = 100_000;
        rig.enforcement.apply(stopped(Leak.WHOLE));
        assertEquals(1000, pause(REQUEST), 3);
        clocks.pass(1000);
        stop(0.25, 16_000);
        assertEquals(4000, pause(REQUEST), 12);
        assertTrue(rig.enforcement.figures().emergency);
        clocks.pass(4000);
        rig.enforcement.apply(stopped(Leak.WHOLE));
        assertEquals(1000, pause(REQUEST), 3);
        assertFalse(rig.enforcement.figures().emergency);
    }

    /** The unused part of an earlier share does not count. */
    @Test
    void newConnectionsHaveTheSameShare() {
        rig.leakBytesPerSecond = 100_000;
        stop(0.1, 40_000);
        pause(REQUEST);
        TagSet tagSet = rig.tagSets.find("", "c");
        clocks.pass(9_000);
        assertFalse(rig.enforcement.admits(tagSet, "", true));
        clocks.pass(1_100);
        assertTrue(rig.enforcement.admits(tagSet, "", true));
    }

    /** Such a user is throttled for its own traffic, and not because a disk fills. */
    @Test
    void aUsersOwnThrottleHasTheWholeBudget() {
        rig.leakBytesPerSecond = 100_000;
        Map<String, Double> ann = Map.of("ann", 0.0);
        rig.enforcement.apply(
                new Factors(1.0, ann, Factors.Source.SIDECAR, 1, new Leak(0.1, 40_000),
                        false, false, Scope.ALL));
        assertFalse(rig.enforcement.figures().emergency);
        assertEquals(1000, rig.sensor.produce("ann", "", REQUEST), 3);
        assertEquals(4000, rig.sensor.produce("ann", "", 1e9), 5);
    }

    @Test
    void withoutAThrottleItIsNoEmergency() {
        rig.enforcement.apply(
                new Factors(1.0, Map.of(), Factors.Source.SIDECAR, 1, new Leak(0.1, 40_000),
                        false, false, Scope.ALL));
        assertFalse(rig.enforcement.figures().emergency);
        assertEquals(0, pause(1e9));
    }

    /** The bytes of a denied request do not land, so other clients do not wait for them. */
    @Test
    void aRequestThatIsDeniedUsesNothingUp() {
        rig.leakBytesPerSecond = 100_000;
        rig.enforcement.apply(stopped(Leak.WHOLE));
        rig.sensor.produce("", "first", 1);
        rig.sensor.produce("", "c", 1);
        DeniedRequest.next(true);
        assertEquals(4000, pause(1e6), 1);
        assertEquals(100, rig.sensor.produce("", "other", 10_000), 2);
        clocks.pass(4000);
        assertEquals(100, pause(10_000), 2);
    }

    /** A request that is not denied resets the thread's flag. */
    @Test
    void whatAThreadKnewIsOfOneRequest() {
        DeniedRequest.next(true);
        assertTrue(DeniedRequest.isDue());
        assertFalse(DeniedRequest.isDue());
        DeniedRequest.next(true);
        DeniedRequest.next(false);
        assertFalse(DeniedRequest.isDue());
    }

    /** The smallest leak applies below the stop line if nothing can be refused. */
    @Test
    void theSmallestLeakIsTheLongestPauses() {
        rig.leakBytesPerSecond = 100_000;
        rig.enforcement.apply(stopped(Leak.WHOLE).urgent());
        assertEquals(300_000, pause(REQUEST), 5);
        assertTrue(rig.enforcement.figures().emergency);
    }
}
