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

/** What the guards find where Kafka is another than the callback knows. */
class FaultsTest {
    private final MovedClocks clocks = new MovedClocks();
    private final Rig rig = new Rig(clocks);

    private static Factors stopped() {
        return new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1);
    }

    /** With the Kafka that it was made for, nothing is wrong. */
    @Test
    void theSelfTestFindsNothing() {
        assertNull(SelfTest.failure(SidecarMetricsReporter::new));
    }

    /** A Kafka that passes no rates on, pauses otherwise, or has other classes is found out. */
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

    /** Each fault is logged once, and again when it comes back. */
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

    /** Requests are asked for tags, and no quota: clients are not throttled, and that is told. */
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

    /** The same where tag sets are not known, as without the metrics reporter. */
    @Test
    void unknownTagSetsAreNoticed() {
        rig.enforcement.apply(stopped());
        for (int request = 0; request < Canary.LEAST; request++) {
            rig.enforcement.beforeRecord(null);
        }
        assertEquals("not-asked", rig.enforcement.faults().worst());
    }

    /** While nothing is throttled, nobody has to ask. */
    @Test
    void withoutAThrottleNothingIsMissed() {
        for (int request = 0; request < 2 * Canary.LEAST; request++) {
            rig.enforcement.beforeRecord(null);
            rig.sensor.produce("", "c", 1000);
        }
        assertEquals("none", rig.enforcement.faults().worst());
    }
}
