package throttlesidecar.throttling;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.throttling.Throttle.Mode;

/** Factors between 0 and 1, releases, and factors of single users. */
class ReleaseTest {
    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);

    private static Factors factors(double global) {
        return new Factors(global, Map.of(), Factors.Source.SIDECAR, 1);
    }

    private static Factors user(String name, double factor) {
        return new Factors(1.0, Map.of(name, factor), Factors.Source.SIDECAR, 1);
    }

    /** Sends on one connection at a rate, or as fast as pauses permit; returns bytes per second. */
    private double send(String user, double bytesPerSecond, double bytes, long millis) {
        long until = clocks.nowMs() + millis;
        long due = clocks.nowMs();
        double sent = 0;
        while (due < until) {
            clocks.pass(Math.max(0, due - clocks.nowMs()));
            int pause = rig.sensor.produce(user, user.isEmpty() ? "c" : "", bytes);
            assertTrue(pause >= 0 && pause <= rig.pauseMaxMs + 1, "pause " + pause);
            sent += bytes;
            long interval = (long) (bytes / bytesPerSecond * 1000);
            due = Math.max(due + interval, clocks.nowMs() + pause);
        }
        clocks.pass(Math.max(0, until - clocks.nowMs()));
        return sent / (millis / 1000.0);
    }

    @ParameterizedTest
    @ValueSource(doubles = {10_000, 100_000, 1_000_000})
    void thereIsNoFloodAfterARelease(double bytes) {
        double before = send("", 6e6, bytes, 30_000);
        rig.enforcement.apply(factors(0.0));
        send("", 60e6, bytes, 30_000);
        rig.enforcement.apply(factors(1.0));
        // The client has a backlog, and would send ten times as fast.
        for (int second = 0; second < 5; second++) {
            double now = send("", 60e6, bytes, 1000);
            assertTrue(now <= before * 1.4 + 2 * bytes, second + " s: " + now + " of " + before);
        }
    }

    @Test
    void nineTenthsOfTheEarlierThroughputAreBackAtOnce() {
        double before = send("", 6e6, 100_000, 30_000);
        rig.enforcement.apply(factors(0.0));
        send("", 6e6, 100_000, 30_000);
        rig.enforcement.apply(factors(1.0));
        assertTrue(send("", 60e6, 100_000, 5000) >= 0.9 * before);
    }

    @Test
    void theRampEndsAtTheClientsOwnQuota() {
        rig.quota("ann", "", 3e6);
        send("ann", 1e6, 10_000, 30_000);
        rig.enforcement.apply(factors(0.0));
        send("ann", 1e6, 10_000, 30_000);
        rig.enforcement.apply(factors(1.0));
        assertEquals(1.3e6, send("ann", 60e6, 10_000, 1000), 1e5);
        send("ann", 60e6, 10_000, 59_000);
        assertEquals(2.3e6, send("ann", 60e6, 10_000, 1000), 1e5);
        send("ann", 60e6, 10_000, 60_000);
        assertEquals(3e6, send("ann", 60e6, 10_000, 10_000), 1e5);
        clocks.pass(4 * rig.rampMs);
        rig.enforcement.apply(factors(1.0));
        assertEquals(Mode.FREE, rig.enforcement.figures().mode);
        assertEquals(3e6, rig.enforcement.limit("ann", ""));
    }

    /** If the callback is switched off and on during a throttle, the rates before the throttle count. */
    @Test
    void aSwitchDuringAThrottleForgetsNoRate() {
        double before = send("", 6e6, 100_000, 30_000);
        rig.enforcement.apply(factors(0.0));
        send("", 6e6, 100_000, 30_000);
        rig.enforcement.apply(Factors.DISABLED);
        assertEquals(Mode.FREE, rig.enforcement.figures().mode);
        send("", 6e6, 100_000, 1000);
        rig.enforcement.apply(factors(0.0));
        send("", 6e6, 100_000, 30_000);
        rig.enforcement.apply(factors(1.0));
        double after = send("", 60e6, 100_000, 5000);
        assertTrue(after >= 0.9 * before && after <= 1.4 * before, after + " of " + before);
    }

    /** A client without an earlier rate begins at the average, and soon has the rate that it needs. */
    @Test
    void theRampOfANewcomerDoubles() {
        send("bob", 1e5, 1000, 30_000);
        rig.enforcement.apply(factors(0.0));
        send("bob", 1e5, 1000, 30_000);
        rig.enforcement.apply(factors(1.0));
        double begin = send("ann", 60e6, 10_000, 10_000);
        assertEquals(1.33e5, begin, 0.15e5);
        assertEquals(begin * 1.5, send("ann", 60e6, 10_000, 5000), 0.2e5);
        send("ann", 60e6, 10_000, 20_000);
        // From 32 to 64 times as much, and the line: at 37.5 s 2^5.5 x 1.9.
        assertEquals(8.5e6, send("ann", 60e6, 10_000, 5000), 1e6);
        assertEquals(1.1e5, send("bob", 1e5, 1000, 10_000), 0.2e5, "the rate is the same as before");
    }

    /** Its leader moved here just before the throttle, and it had hardly begun to send. */
    @Test
    void aRateOfAClientsFirstSecondsIsTheLeastThatItWrites() {
        send("", 3e5, 30_000, 2000);
        rig.enforcement.apply(factors(0.0));
        send("", 3e6, 30_000, 20_000);
        rig.enforcement.apply(factors(1.0));
        send("", 3e6, 30_000, 30_000);
        assertEquals(3e6, send("", 3e6, 30_000, 30_000), 2e5);
    }

    /** A broker that starts during a throttle never measures the client's own rate. */
    @Test
    void aRateThatOnlyShortReleasesAllowedIsNotTakenForTheClientsOwn() {
        rig.enforcement.apply(factors(0.0));
        send("", 3e6, 10_000, 20_000);
        for (int release = 0; release < 3; release++) {
            rig.enforcement.apply(factors(1.0));
            send("", 3e6, 10_000, 2000);
            rig.enforcement.apply(factors(0.0));
            send("", 3e6, 10_000, 20_000);
        }
        rig.enforcement.apply(factors(1.0));
        send("", 3e6, 10_000, 30_000);
        assertTrue(send("", 3e6, 10_000, 10_000) >= 2.7e6);
    }

    @Test
    void aRampOfNothingIsAReleaseAtOnce() {
        rig.rampMs = 0;
        send("", 6e6, 100_000, 30_000);
        rig.enforcement.apply(factors(0.0));
        send("", 6e6, 100_000, 5000);
        rig.enforcement.apply(factors(1.0));
        assertEquals(Mode.FREE, rig.enforcement.figures().mode);
        assertEquals(0, rig.sensor.produce("", "c", 1e8));
    }

    @Test
    void switchedOffEverythingIsAsKafkaHasItAtOnce() {
        rig.quota("ann", "", 1e6);
        send("ann", 1e6, 10_000, 30_000);
        rig.enforcement.apply(factors(0.0));
        assertTrue(rig.sensor.produce("ann", "", 1e6) > 3000);
        rig.enforcement.apply(Factors.DISABLED);
        assertEquals(1e6, rig.enforcement.limit("ann", ""));
        assertEquals(0, rig.sensor.produce("", "c", 1e8));
    }

    @ParameterizedTest
    @CsvSource({"0.5, 1e6", "0.1, 1e6", "0.9, 1e5"})
    void aFactorBetweenMultipliesTheClientsQuota(double factor, double quota) {
        rig.quota("ann", "", quota);
        send("ann", quota, quota / 100, 30_000);
        rig.enforcement.apply(factors(factor));
        // The earlier bytes must leave the window first.
        send("ann", 60e6, quota / 100, 60_000);
        assertEquals(factor * quota, send("ann", 60e6, quota / 100, 60_000), factor * quota * 0.1);
    }

    @Test
    void whereThereIsNoQuotaItScalesTheRateBefore() {
        double before = send("", 6e6, 50_000, 30_000);
        rig.enforcement.apply(factors(0.25));
        send("", 60e6, 50_000, 60_000);
        assertEquals(before / 4, send("", 60e6, 50_000, 60_000), before * 0.03);
    }

    /** A new client has the average rate of the others. */
    @Test
    void onTheSlopeItScalesTheSmallerOfQuotaAndRateBefore() {
        rig.quota("ann", "", 6e6);
        double before = send("ann", 1e6, 10_000, 30_000);
        rig.enforcement.apply(sloped(0.5));
        send("ann", 60e6, 10_000, 60_000);
        assertEquals(0.5 * before, send("ann", 60e6, 10_000, 60_000), 0.05 * before);
        send("bob", 60e6, 10_000, 60_000);
        assertEquals(0.5 * before, send("bob", 60e6, 10_000, 60_000), 0.05 * before);
        rig.enforcement.apply(sloped(0.25));
        send("ann", 60e6, 10_000, 60_000);
        assertEquals(0.25 * before, send("ann", 60e6, 10_000, 60_000), 0.05 * before);
        rig.quota("ann", "", 1e5);
        // The earlier bytes alone exceed that quota.
        clocks.pass(Throttle.WINDOW_MS + 1000);
        send("ann", 60e6, 1_000, 60_000);
        assertEquals(0.25e5, send("ann", 60e6, 1_000, 60_000), 0.25e4);
    }

    @Test
    void aThrottleThatComesBackFindsTheRatesOfBeforeAndNotItsOwn() {
        double before = send("", 6e6, 50_000, 30_000);
        for (int time = 0; time < 3; time++) {
            rig.enforcement.apply(factors(0.0));
            send("", 60e6, 50_000, 5000);
            rig.enforcement.apply(factors(1.0));
        }
        rig.enforcement.apply(factors(0.0));
        double leaked = send("", 60e6, 50_000, 60_000);
        assertEquals(0.01 * before, leaked, 0.005 * before);
    }

    @Test
    void aUserWithAFactorOfItsOwnIsThrottledAlone() {
        send("CN%3Dann", 1e6, 10_000, 30_000);
        send("bob", 1e6, 10_000, 30_000);
        rig.enforcement.apply(user("CN=ann", 0.0));
        assertTrue(rig.sensor.produce("CN%3Dann", "", 1e6) > 3000);
        assertEquals(0, rig.sensor.produce("bob", "", 1e6));
        rig.enforcement.apply(factors(1.0));
        clocks.pass(4 * rig.rampMs);
        rig.enforcement.apply(factors(1.0));
        assertEquals(0, rig.sensor.produce("CN%3Dann", "", 1e6));
    }

    @Test
    void theStricterOfTheUsersAndTheBrokersFactorCounts() {
        rig.quota("ann", "", 1e6);
        send("ann", 1e6, 10_000, 30_000);
        Factors both = new Factors(0.5, Map.of("ann", 0.1), Factors.Source.SIDECAR, 1);
        rig.enforcement.apply(both);
        send("ann", 60e6, 10_000, 90_000);
        assertEquals(1e5, send("ann", 60e6, 10_000, 60_000), 1e4);
    }

    /** The users have their own tags until then, and no longer. */
    @Test
    void aUserCountsAsThrottledUntilItsRampIsOver() {
        Factors ann = new Factors(1.0, Map.of("ann", 0.0), Factors.Source.SIDECAR, 1);
        rig.enforcement.apply(ann);
        assertEquals(Set.of("ann"), rig.enforcement.throttledUsers());
        rig.enforcement.apply(factors(1.0));
        clocks.pass(4 * rig.rampMs - 1);
        rig.enforcement.apply(factors(1.0));
        assertEquals(Set.of("ann"), rig.enforcement.throttledUsers());
        clocks.pass(1);
        rig.enforcement.apply(factors(1.0));
        assertEquals(Set.of(), rig.enforcement.throttledUsers());
    }

    /** One document throttles 200 of 400 users. Each tag set is visited once or twice. */
    @Test
    void usersThatBeginAtOnceDoNotWalkOverAllTagSetsEach() {
        Map<String, Double> begin = new HashMap<>();
        for (int number = 0; number < 400; number++) {
            rig.sensor.produce("user" + number, "", 1e6);
            if (number % 2 == 0) {
                begin.put("user" + number, 0.5);
            }
        }
        begin.put("nobody", 0.5);
        rig.excludesCalls = 0;
        rig.enforcement.apply(new Factors(1.0, begin, Factors.Source.SIDECAR, 1));

        assertEquals(200 + 400, rig.excludesCalls);
    }

    @Test
    void anExcludedUserIsNeverThrottled() {
        rig.excluded.add("ann");
        send("ann", 6e6, 100_000, 12_000);
        rig.enforcement.apply(factors(0.0));
        assertEquals(6e6, send("ann", 6e6, 100_000, 10_000), 3e5);
    }

    @Test
    void aTenantsOwnQuotaIsTheSameAfterAThrottle() {
        rig.quota("ann", "", 1e6);
        rig.enforcement.apply(factors(1.0));
        send("ann", 60e6, 10_000, 30_000);
        // The time is long since Kafka's window permits bursts, of about 10 % in half a minute.
        double before = send("ann", 60e6, 10_000, 300_000);
        assertEquals(1e6, before, 5e4);
        rig.enforcement.apply(factors(0.0));
        send("ann", 60e6, 10_000, 30_000);
        rig.enforcement.apply(factors(1.0));
        send("ann", 60e6, 10_000, 30_000);
        assertEquals(before, send("ann", 60e6, 10_000, 300_000), 5e4);
    }

    @Test
    void ratesThatARampMadeAreNotTakenForThoseOfBefore() {
        double before = send("", 6e6, 50_000, 30_000);
        for (int time = 0; time < 10; time++) {
            rig.enforcement.apply(factors(0.0));
            send("", 60e6, 50_000, 2000);
            rig.enforcement.apply(factors(1.0));
            send("", 60e6, 50_000, 14_000);
        }
        assertEquals(before, rig.tagSets.find("", "c").before, 0.02 * before);
    }

    @Test
    void ratesThatAThrottleMadeAreNotTakenForThoseOfBeforeWithoutARampEither() {
        rig.rampMs = 0;
        double before = send("", 6e6, 50_000, 30_000);
        rig.enforcement.apply(factors(0.0));
        send("", 60e6, 50_000, 30_000);
        rig.enforcement.apply(factors(1.0));
        rig.enforcement.apply(factors(0.0));
        assertEquals(before, rig.tagSets.find("", "c").before, 0.02 * before);
    }

    @Test
    void aThrottleOfAllFindsTheRateThatAUserHadBeforeItsOwn() {
        double before = send("ann", 6e6, 50_000, 30_000);
        rig.enforcement.apply(user("ann", 0.0));
        send("ann", 60e6, 50_000, 30_000);
        rig.enforcement.apply(new Factors(0.0, Map.of("ann", 0.0), Factors.Source.SIDECAR, 1));
        assertEquals(before, rig.tagSets.find("ann", "").before, 0.02 * before);
    }

    @Test
    void aUserThatIsReleasedAfterAllIsPacedFromThenOn() {
        double before = send("ann", 6e6, 50_000, 30_000);
        rig.enforcement.apply(new Factors(0.0, Map.of("ann", 0.0), Factors.Source.SIDECAR, 1));
        send("ann", 60e6, 50_000, 5000);
        rig.enforcement.apply(user("ann", 0.0));
        send("ann", 60e6, 50_000, 30_000);
        rig.enforcement.apply(factors(1.0));
        send("ann", 60e6, 50_000, 5000);
        assertEquals(1.37 * before, send("ann", 60e6, 50_000, 5000), 0.05 * before);
    }

    @Test
    void aUsersLeakIsOfItsOwnRate() {
        double before = send("ann", 1e6, 10_000, 20_000);
        send("bob", 50e6, 500_000, 1000);
        rig.enforcement.apply(user("ann", 0.0));
        // Earlier rates cover Kafka's window, which has one second without traffic.
        assertEquals(1000 / (0.009 * before) * 1000, rig.sensor.produce("ann", "", 1000), 20);
    }

    @Test
    void aUserWithoutTrafficLeaksOfWhatOthersHad() {
        double before = send("bob", 1e6, 10_000, 20_000);
        rig.enforcement.apply(user("ann", 0.0));
        assertEquals(1000 / (0.009 * before) * 1000, rig.sensor.produce("ann", "", 1000), 10);
    }

    @Test
    void whatExcludedUsersSendIsNotInTheBudget() {
        rig.excluded.add("bob");
        double before = send("ann", 1e6, 10_000, 20_000);
        send("bob", 50e6, 500_000, 1000);
        rig.enforcement.apply(factors(0.0));
        assertEquals(1000 / (0.009 * before) * 1000, rig.sensor.produce("ann", "", 1000), 20);
    }

    @Test
    void aFactorBetweenOnABrokerWithoutTrafficStopsNobody() {
        rig.enforcement.apply(factors(0.5));
        send("ann", 60e6, 10_000, 30_000);
        assertEquals(0.5 * Ramp.FLOOR, send("ann", 60e6, 10_000, 60_000), 0.05 * Ramp.FLOOR);
    }

    @Test
    void whoIsNotPausedDoesNotCountAsThrottled() {
        rig.quota("ann", "", 1e6);
        send("ann", 1e6, 10_000, 30_000);
        rig.enforcement.apply(factors(0.5));
        rig.sensor.produce("ann", "", 10_000);
        assertEquals(1, rig.enforcement.figures().tagSetsThrottled);
        rig.quota("ann", "", 1e4);
        rig.sensor.produce("ann", "", 10_000);
        assertEquals(0, rig.enforcement.figures().tagSetsThrottled);
    }

    @Test
    void anEmptyRequestIsPausedAsTheLastOneWas() {
        send("", 6e6, 100_000, 12_000);
        rig.enforcement.apply(factors(0.0));
        assertEquals(4000, rig.sensor.produce("", "c", 1e6), 1);
        assertEquals(4000, rig.sensor.produce("", "c", 0.0), 1);
    }

    @Test
    void theFiguresReportTheThrottle() {
        send("", 6e6, 100_000, 12_000);
        rig.enforcement.apply(factors(0.0));
        assertEquals(0, rig.enforcement.figures().tagSetsThrottled);
        rig.sensor.produce("", "c", 1e8);
        Enforcement.Figures figures = rig.enforcement.figures();
        assertEquals(1, figures.tagSetsThrottled);
        assertEquals(4000, figures.longestPauseMs);
        assertEquals(4000, figures.pauseInForceMs);
        assertEquals(Mode.THROTTLED, figures.mode);
        assertEquals(0.0, figures.factors.global);
    }

    private static Factors sloped(double factor) {
        return new Factors(
                factor, Map.of(), Factors.Source.SIDECAR, 1, Leak.WHOLE, false, true, Scope.ALL);
    }
}
