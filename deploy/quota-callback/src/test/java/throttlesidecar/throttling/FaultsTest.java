package throttlesidecar.throttling;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import throttlesidecar.SidecarMetricsReporter;
import throttlesidecar.decision.Factors;
import throttlesidecar.observability.Faults;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.MovedClocks;

/** The faults that are found if Kafka differs from the versions that the callback knows. */
class FaultsTest {
    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);

    private static Factors stopped() {
        return new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1);
    }

    /** With a known version of Kafka, no fault is found. */
    @Test
    void theSelfTestFindsNothing() {
        assertNull(SelfTest.failure(SidecarMetricsReporter::new));
    }

    /** A fault is found if Kafka reports no rates, makes other pauses, or has other classes. */
    @Test
    void theSelfTestFindsWhatIsWrong() {
        String without = SelfTest.failure(tagSets -> new SidecarMetricsReporter(new TagSets()));
        assertEquals("Kafka's sensor records a request without a pause", without);
        rig.pauseMaxMs = 2000;
        String shorter = SelfTest.failure(tagSets -> {
            Enforcement other = new Enforcement(tagSets, rig, rig::settings, Clocks.SYSTEM);
            other.apply(stopped());
            other.beforeRecord(null);
            tagSets.enforcement(other);
            return new SidecarMetricsReporter(tagSets);
        });
        assertTrue(shorter.startsWith("a pause of "), shorter);
        NoSuchMethodError error = new NoSuchMethodError("config");
        assertEquals(error.toString(), SelfTest.failure(tagSets -> {
            throw error;
        }));
    }

    /** Each fault is logged once, and again if it returns. */
    @Test
    void reportsEachOnce() {
        Faults faults = new Faults();
        List<String> lines = new ArrayList<>();
        assertEquals("none", faults.worst());
        faults.found(Faults.Kind.ERROR, "first");
        faults.found(Faults.Kind.ERROR, "second");
        faults.report((kind, detail) -> lines.add(detail));
        faults.report((kind, detail) -> lines.add(detail));
        assertEquals(List.of("first"), lines);
        faults.found(Faults.Kind.NOT_ASKED, "third");
        assertEquals("not-asked", faults.worst());
        faults.gone(Faults.Kind.ERROR);
        faults.report((kind, detail) -> lines.add(detail));
        faults.found(Faults.Kind.ERROR, "fourth");
        faults.report((kind, detail) -> lines.add(detail));

        assertEquals(List.of("first", "third", "fourth"), lines);
    }

    /** Kafka asks for tags but for no quotas, so clients are not throttled. The fault is reported. */
    @Test
    void aKafkaThatAsksForNoQuotasIsNoticed() {
        rig.sensor.produce("", "c", 1000);
        rig.enforcement.apply(stopped());
        TagSet tagSet = rig.tagSets.find("", "c");
        for (int request = 0; request < Canary.LEAST; request++) {
            assertEquals("none", rig.enforcement.faults().worst());
            rig.enforcement.beforeRecord(tagSet);
        }
        assertEquals("not-asked", rig.enforcement.faults().worst());

        for (int request = 0; request < 2 * Canary.LEAST; request++) {
            rig.sensor.produce("", "c", 1000);
        }
        assertEquals("none", rig.enforcement.faults().worst());
    }

    /** The same if tag sets are not known, as without the metrics reporter. */
    @Test
    void unknownTagSetsAreNoticed() {
        rig.enforcement.apply(stopped());
        for (int request = 0; request < Canary.LEAST; request++) {
            rig.enforcement.beforeRecord(null);
        }
        assertEquals("not-asked", rig.enforcement.faults().worst());
    }

    /** While no client is throttled, Kafka need not ask for quotas. */
    @Test
    void withoutAThrottleNothingIsMissed() {
        for (int request = 0; request < 2 * Canary.LEAST; request++) {
            rig.enforcement.beforeRecord(null);
            rig.sensor.produce("", "c", 1000);
        }
        assertEquals("none", rig.enforcement.faults().worst());
    }
}
