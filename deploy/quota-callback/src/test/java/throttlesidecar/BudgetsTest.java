package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Budgets;
import throttlesidecar.decision.Factors;
import throttlesidecar.observability.Lines;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Mute;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.refusal.RefusedException;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.MovedClocks;

/** Owners past their storage budgets, by authorizer and quota manager; both clients share one quota. */
class BudgetsTest {
    private static final String P = "client.quota.callback.sidecar.";
    private static final int REFUSED = -1;
    private static final KafkaPrincipal SHARED = new KafkaPrincipal("User", "ANONYMOUS");

    private final MovedClocks clocks = new MovedClocks();
    private final Lines lines = new Lines();
    private final Connections connections = new Connections(100);
    private final CallbackRuntime runtime =
            LoneRuntime.of(
                    Settings.of(Map.of(P + "url", "http://127.0.0.1:1")), connections,
                    RefusalLog.ofBroker(), clocks, lines);
    private final SidecarAuthorizer authorizer = new SidecarAuthorizer(connections);
    private final KafkaQuotas kafka = LoneRuntime.kafka(runtime, clocks);

    BudgetsTest() {
        StandardRig.started(authorizer, StandardRig.OPEN);
    }

    @AfterEach
    void close() throws Exception {
        Mute.none();
        kafka.close();
        authorizer.close();
    }

    /** Authorizes and charges a request of 1 MB; returns its pause, ms, or REFUSED. */
    private int produce(KafkaPrincipal principal, String connection, String... topics) {
        try {
            authorizer.authorize(
                    StandardRig.context(ApiKeys.PRODUCE, connection, principal, "app"),
                    StandardRig.writes(ResourceType.TOPIC, topics));
        } catch (RefusedException refused) {
            return REFUSED;
        }
        return kafka.record(principal, "app", 1e6, clocks.nowMs());
    }

    private int produce(String connection, String... topics) {
        return produce(new KafkaPrincipal("User", "ann"), connection, topics);
    }

    /** The factors of the owners etl, with two topics, and web, with one; 1.0 is no throttle. */
    private void apply(double etl, double web) {
        Map<String, Double> factors =
                web < 1.0 ? Map.of("etl", etl, "web", web) : etl < 1.0 ? Map.of("etl", etl) : Map.of();
        Map<String, String> owners = Map.of("raw", "etl", "sold", "etl", "clicks", "web");
        runtime.apply(
                new Factors(1.0, Map.of(), Factors.Source.SIDECAR, 1)
                        .with(factors.isEmpty() ? Budgets.NONE : new Budgets(factors, owners)));
    }

    /** Sends 1 MB/s for ten seconds, on one connection. */
    private void runs() {
        for (int second = 0; second < 10; second++) {
            assertEquals(0, produce("old", "raw"));
            clocks.pass(1000);
        }
    }

    @Test
    void atItsHardBytesAnOwnerIsRefusedAndNobodyElse() {
        runs();
        apply(0.0, 1.0);
        assertEquals(REFUSED, produce("old", "raw"), "also on a connection that is known");
        assertEquals(REFUSED, produce("new", "other", "sold"), "one topic of the owner is enough");
        assertEquals(0, produce("old", "other"), "the same connection, to topics of others");
        assertEquals(0, produce("third", "clicks"));
        assertEquals(2, runtime.refusals.count(Refusals.Reason.BUDGET));
        assertEquals(2, runtime.refusals.total());
    }

    @Test
    void betweenSoftAndHardOnlyItsRequestsPause() {
        runs();
        apply(0.5, 1.0);
        clocks.pass(1000);
        produce("old", "raw");
        int pause = produce("old", "raw");
        assertTrue(pause > 1000, pause + " ms");
        assertEquals(0, produce("old", "other"), "another client of the same tag set");
        assertTrue(produce("old", "other", "sold") >= pause, "a request to both");
    }

    @Test
    void ofTwoOwnersTheStricterCounts() {
        runs();
        apply(0.9, 0.0);
        assertEquals(REFUSED, produce("old", "raw", "clicks"));
        assertEquals(REFUSED, produce("old", "clicks", "raw"));
        assertFalse(REFUSED == produce("old", "raw"));
    }

    /** Refused clients come back after a break, as after every release. */
    @Test
    void aFreedOwnerIsAdmittedAfterABreak() {
        runs();
        apply(0.0, 1.0);
        assertEquals(REFUSED, produce("old", "raw"));
        apply(1.0, 1.0);
        assertEquals(REFUSED, produce("old", "raw"));
        clocks.pass(Refusals.LONGEST_BREAK_MS);
        assertEquals(0, produce("old", "raw"));
        clocks.pass(Refusals.FORGET_MS);
        assertEquals(0, produce("old", "raw"));
    }

    /** On listeners without logins, requests can't be told apart: the owner that was noted stays. */
    @Test
    void oneObjectForAllKeepsItsOwnerUntilTheRelease() {
        for (int second = 0; second < 10; second++) {
            produce(SHARED, "old", "raw");
            clocks.pass(1000);
        }
        apply(0.5, 1.0);
        assertEquals(0, produce(SHARED, "old", "other"));
        produce(SHARED, "old", "raw");
        assertTrue(produce(SHARED, "old", "other") > 0);
        apply(1.0, 1.0);
        assertEquals(0, produce(SHARED, "old", "other"));
        clocks.pass(20_000);
        for (int second = 0; second < 10; second++) {
            assertEquals(0, produce(SHARED, "old", "other"));
            clocks.pass(1000);
        }
        apply(0.5, 1.0);
        produce(SHARED, "old", "other");
        assertEquals(0, produce(SHARED, "old", "other"), "nothing is left of the former throttle");
    }
}
