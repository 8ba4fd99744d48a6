package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Lines;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Mute;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.refusal.RefusedException;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.MovedClocks;

/**
 * Brokers' own connections, such as for the dead letters of share groups, are neither refused nor
 * throttled, and no list names them. Clients never count as brokers.
 */
class BrokersTest {
    private static final String TWO_LISTENERS = "BETWEEN://:9091,CLIENTS://:9092,CONTROLLER://:9093";
    private static final String ONE_LISTENER = "BETWEEN://:9091,CONTROLLER://:9093";
    private static final KafkaPrincipal KAFKA = new KafkaPrincipal("User", "kafka");
    private static final String LETTERS = "ShareGroupDLQManager-client-1";
    private static final int REFUSED = -1;

    private final MovedClocks clocks = new MovedClocks();
    private final Connections connections = new Connections(100);
    private final Lines lines = new Lines();
    private final CallbackRuntime runtime = LoneRuntime.of(
            Settings.of(Map.of()), connections, RefusalLog.ofBroker(), clocks, lines);
    private final KafkaQuotas kafka = LoneRuntime.kafka(runtime, clocks);
    private final SidecarAuthorizer authorizer = new SidecarAuthorizer(connections);
    private final InetAddress broker = address(1);
    private final InetAddress here = address(9);

    @AfterEach
    void close() throws Exception {
        Mute.none();
        kafka.close();
        authorizer.close();
    }

    private static InetAddress address(int last) {
        try {
            return InetAddress.getByAddress(new byte[] {10, 0, 0, (byte) last});
        } catch (UnknownHostException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private void start(String listeners) {
        Map<String, String> configs = new HashMap<>(StandardRig.OPEN);
        configs.put("listeners", listeners);
        configs.put("controller.listener.names", "CONTROLLER");
        StandardRig.started(authorizer, configs);
    }

    /** A broker of 10.0.0.1 fetches as a follower. */
    private void replicates(KafkaPrincipal principal, boolean isBetweenBrokers) {
        ResourcePattern cluster =
                new ResourcePattern(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL);
        authorizer.authorize(
                StandardRig.context(
                        ApiKeys.FETCH, "f", broker, principal, "broker-1-fetcher-0", isBetweenBrokers),
                List.of(new Action(AclOperation.CLUSTER_ACTION, cluster, 1, true, true)));
    }

    /** Sends 1 MB to a topic, and returns its pause in ms, or REFUSED. */
    private int produce(
            InetAddress from, KafkaPrincipal principal, boolean isBetweenBrokers) {
        String id = "10.0.0.9:9091-" + from.getHostAddress() + ":5000-0";
        try {
            authorizer.authorize(
                    StandardRig.context(
                            ApiKeys.PRODUCE, id, from, principal, LETTERS, isBetweenBrokers),
                    StandardRig.writes(ResourceType.TOPIC, "dlq.orders"));
        } catch (RefusedException refused) {
            return REFUSED;
        }
        return kafka.record(principal, LETTERS, 1e6, clocks.nowMs());
    }

    private void apply(boolean stops) {
        Factors factors = new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1);
        runtime.apply(stops ? factors.throttled(Factors.Source.SIDECAR, true, Scope.ALL) : factors);
    }

    /** At the stop line and in a throttle a broker's record is appended without a pause. */
    @Test
    void brokersAreNeitherRefusedNorPaused() {
        start(TWO_LISTENERS);
        replicates(KAFKA, true);
        for (boolean stops : List.of(false, true)) {
            apply(stops);
            for (int each = 0; each < 5; each++) {
                assertEquals(0, produce(address(2), KAFKA, true), "whichever broker sends it");
            }
            assertEquals(REFUSED, stops ? produce(broker, KAFKA, false) : REFUSED);
        }
        assertEquals(0, connections.size(), "nor is it counted as a client");
        assertEquals(0L, runtime.enforcement.figures().longestPauseMs);
    }

    /** In a scope of volumes too. */
    @Test
    void brokersAreOutOfEveryScope() {
        start(TWO_LISTENERS);
        replicates(KAFKA, true);
        runtime.apply(
                new Factors(
                        0.0, Map.of(), Factors.Source.SIDECAR, 1, Leak.WHOLE, true, false,
                        Scope.of(Set.of("dlq.orders"))));
        assertEquals(0, produce(broker, KAFKA, true));
        assertEquals("", runtime.enforcement.clientsInScope());
    }

    /** On a listener that clients use too, only connections from brokers' machines count. */
    @Test
    void brokersAreKnownByTheirAddressesWhereClientsShareTheListener() {
        start(ONE_LISTENER);
        apply(true);
        assertEquals(REFUSED, produce(broker, KAFKA, true), "no broker is known yet");
        replicates(KAFKA, true);
        assertEquals(0, produce(broker, KAFKA, true));
        assertEquals(0, produce(here, KAFKA, true), "this broker's own");
        assertEquals(REFUSED, produce(address(2), KAFKA, true), "a client with the brokers' login");
        InetAddress loopback = InetAddress.getLoopbackAddress();
        assertEquals(REFUSED, produce(loopback, KAFKA, true));
    }

    /** Without logins, with another principal or by another listener nobody is a broker. */
    @Test
    void clientsAreNeverBrokers() {
        start(TWO_LISTENERS);
        replicates(KafkaPrincipal.ANONYMOUS, true);
        replicates(KAFKA, false);
        apply(true);
        assertEquals(REFUSED, produce(broker, KafkaPrincipal.ANONYMOUS, true));
        assertEquals(REFUSED, produce(broker, KAFKA, true), "CLUSTER_ACTION by a clients' listener");
        replicates(KAFKA, true);
        assertEquals(REFUSED, produce(broker, KAFKA, false));
        assertEquals(REFUSED, produce(broker, new KafkaPrincipal("User", "ann"), true));
        assertTrue(lines.toString().contains("Refused"), lines.toString());
        assertFalse(connections.size() > 0);
    }
}
