package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Lines;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Mute;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.refusal.RefusedException;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.MovedClocks;

/** A throttle of the clients that write to topics on full volumes, by authorizer and quota manager. */
class ScopeTest {
    private static final String P = "client.quota.callback.sidecar.";
    private static final int REFUSED = -1;

    private final MovedClocks clocks = new MovedClocks();
    private final Lines lines = new Lines();
    private final Connections connections = new Connections(100);
    private final CallbackRuntime runtime =
            LoneRuntime.of(
                    Settings.of(Map.of(P + "url", "http://127.0.0.1:1")), connections,
                    RefusalLog.ofBroker(), clocks, lines);
    private final SidecarAuthorizer authorizer = new SidecarAuthorizer(connections);
    private final KafkaQuotas kafka = LoneRuntime.kafka(runtime, clocks);

    ScopeTest() {
        StandardRig.started(authorizer, StandardRig.OPEN);
    }

    @AfterEach
    void close() throws Exception {
        Mute.none();
        kafka.close();
        authorizer.close();
    }

    private static KafkaPrincipal ann() {
        return new KafkaPrincipal("User", "ann");
    }

    private boolean admits(String connection, KafkaPrincipal principal, String... topics) {
        try {
            authorizer.authorize(
                    StandardRig.context(ApiKeys.PRODUCE, connection, principal, "app"),
                    StandardRig.writes(ResourceType.TOPIC, topics));
            return true;
        } catch (RefusedException refused) {
            return false;
        }
    }

    /** The pause of a request of 1 MB that has landed, ms. */
    private int charge(KafkaPrincipal principal) {
        return kafka.record(principal, "app", 1e6, clocks.nowMs());
    }

    /** Authorizes and charges a request with its own principal; returns its pause, or REFUSED. */
    private int produce(String connection, String... topics) {
        KafkaPrincipal principal = ann();
        return admits(connection, principal, topics) ? charge(principal) : REFUSED;
    }

    private void apply(double factor, Scope scope) {
        apply(new Factors(factor, Map.of(), Factors.Source.SIDECAR, 1).of(scope));
    }

    private void apply(Factors factors) {
        runtime.apply(factors);
    }

    private static Scope of(String... topics) {
        return Scope.of(Set.of(topics));
    }

    /** Sends 1 MB/s for ten seconds, on one connection. */
    private void runs() {
        for (int second = 0; second < 10; second++) {
            assertEquals(0, produce("old", "free"));
            clocks.pass(1000);
        }
    }

    /** A client that writes elsewhere has no pause and is not refused, even on new connections. */
    @Test
    void onlyWhoWritesToAFullVolumeIsThrottled() {
        runs();
        apply(0.0, of("full", "fuller"));
        assertEquals(0, produce("old", "free"));
        for (int each = 0; each < 20; each++) {
            assertEquals(0, produce("new-" + each, "free"));
        }
        assertEquals(4000, produce("old", "full"), 1);
        produce("later-1", "full");
        assertEquals(REFUSED, produce("later-2", "full"));
        assertEquals(0, produce("later-2", "free"), "its connection is refused only for topics on full volumes");
        assertEquals(REFUSED, produce("later-2", "free", "fuller"), "one topic in scope is enough");
    }

    /** A request out of scope does not make a connection older than the throttle. */
    @Test
    void afterAFreeRequestAConnectionIsStillNew() {
        runs();
        apply(0.0, of("full"));
        produce("new-1", "full");
        assertEquals(0, produce("new-2", "free"));
        assertEquals(REFUSED, produce("new-2", "full"));
    }

    /** Clients out of scope do not use up the leak budget. */
    @Test
    void whoIsFreeTakesNoBudget() {
        runs();
        apply(0.0, of("full"));
        for (int each = 0; each < 50; each++) {
            assertEquals(0, produce("old", "free"));
        }
        assertTrue(produce("new-1", "full") > 0, "the leak budget has no debt");
        assertEquals(REFUSED, produce("new-2", "full"));
    }

    /** The report names only clients in scope, with the bytes that each has landed. */
    @Test
    void namesTheClientsInScope() {
        runs();
        apply(0.0, of("full"));
        produce("old", "free");
        assertEquals(null, runtime.headers().get("Throttle-Scope"));
        produce("old", "full");
        produce("old", "full");
        assertEquals("clients=ann/app:2000000", runtime.headers().get("Throttle-Scope"));
        apply(1.0, Scope.ALL);
        clocks.pass(10_000_000);
        apply(1.0, Scope.ALL);
        assertEquals(null, runtime.headers().get("Throttle-Scope"));
    }

    /** With acks=all, a request is charged after later ones of its client. Its own topics count. */
    @Test
    void eachRequestCountsAsWhatItWritesTo() {
        runs();
        apply(0.0, of("full"));
        KafkaPrincipal one = ann();
        KafkaPrincipal other = ann();
        assertTrue(admits("old", one, "full"));
        assertTrue(admits("old", other, "free"));
        assertEquals(4000, charge(one), 1);
        assertEquals(0, charge(other));
    }

    /**
     * If all clients share one principal object, as ANONYMOUS, a client's requests can't be told from
     * those of others with its client-id. All are in scope once one was, until the scope changes.
     */
    @Test
    void withoutLoginsNobodyEscapesBetweenOthersRequests() {
        runs();
        apply(0.0, of("full"));
        assertTrue(admits("old", KafkaPrincipal.ANONYMOUS, "free"));
        assertEquals(0, charge(KafkaPrincipal.ANONYMOUS));
        assertTrue(admits("old", KafkaPrincipal.ANONYMOUS, "full"));
        assertTrue(charge(KafkaPrincipal.ANONYMOUS) > 0);
        assertTrue(charge(KafkaPrincipal.ANONYMOUS) > 0);
        assertTrue(admits("old", KafkaPrincipal.ANONYMOUS, "free"));
        assertTrue(charge(KafkaPrincipal.ANONYMOUS) > 0);
        apply(0.0, of("full"));
        assertTrue(admits("old", KafkaPrincipal.ANONYMOUS, "free"));
        assertTrue(charge(KafkaPrincipal.ANONYMOUS) > 0, "the scope is the same");
        apply(0.0, of("fuller"));
        assertTrue(admits("old", KafkaPrincipal.ANONYMOUS, "free"));
        assertEquals(0, charge(KafkaPrincipal.ANONYMOUS));
    }

    /** A request in progress when the throttle began is not paused. Later, an unknown request is. */
    @Test
    void whatWasAuthorizedBeforeIsFree() {
        runs();
        apply(0.0, of("full"));
        clocks.pass(30_000);
        assertEquals(0, charge(ann()));
        clocks.pass(1);
        assertTrue(charge(ann()) > 0);
    }

    /**
     * If the topics are not known, all clients are throttled; otherwise only those that write to them.
     */
    @Test
    void theScopeMoves() {
        runs();
        apply(0.0, Scope.ALL);
        assertEquals(4000, produce("old", "free"), 1);
        apply(0.0, of("full"));
        assertEquals(0, produce("old", "free"));
        apply(0.0, of("free"));
        assertEquals(4000, produce("old", "free"), 1);
    }

    /** After the release, only clients that were throttled have a ramp. */
    @Test
    void whoWasFreeHasNoRamp() {
        runs();
        apply(0.0, of("full"));
        clocks.pass(20_000);
        apply(1.0, Scope.ALL);
        int ramped = 0;
        for (int each = 0; each < 20; each++) {
            assertEquals(0, produce("old", "free"), "request " + each);
            ramped = Math.max(ramped, produce("old", "full"));
        }
        assertTrue(ramped > 0);
    }

    /** A factor between 0 and 1 applies only to clients in scope too. */
    @Test
    void aQuotaIsMultipliedForThoseAlone() {
        runs();
        apply(0.1, of("full"));
        for (int each = 0; each < 5; each++) {
            assertEquals(0, produce("old", "free"));
        }
        assertTrue(produce("old", "full") > 0);
    }

    /** Below the stop line, clients out of scope are admitted. */
    @Test
    void theStopLineHasTheSameScope() {
        runs();
        Leak leak = Leak.WHOLE;
        apply(new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1, leak, true, false, Scope.ALL).of(of("full")));
        assertEquals(REFUSED, produce("old", "full"));
        assertEquals(0, produce("old", "free"));
        assertEquals(0, produce("new", "free"));
    }

    /** A user's own throttle applies to all requests of the user. */
    @Test
    void aUsersOwnThrottleHasNoScope() {
        runs();
        Map<String, Double> users = Map.of("ann", 0.0);
        apply(new Factors(0.0, users, Factors.Source.SIDECAR, 1).of(of("full")));
        assertTrue(produce("old", "free") > 0);
        produce("new-1", "free");
        assertEquals(REFUSED, produce("new-2", "free"));
    }

    /** When topics leave the scope, a refused connection may still have requests to them in flight. */
    @Test
    void whoWasRefusedIsFreeAfterABreak() {
        runs();
        apply(0.0, of("full", "other"));
        produce("new-1", "other");
        assertEquals(REFUSED, produce("new-2", "other"));
        apply(0.0, of("full"));
        assertEquals(REFUSED, produce("new-2", "other"), "it may follow a refused request");
        clocks.pass(Refusals.LONGEST_BREAK_MS);
        assertEquals(0, produce("new-2", "other"));
    }
}
