package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.ObjectName;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Factors;
import throttlesidecar.observability.Lines;
import throttlesidecar.reading.RawServer;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Mute;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.refusal.RefusedException;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.throttling.DeniedRequest;

/** The authorizer and the callback, made as by a broker, in either order, or only one of them. */
class SidecarAuthorizerTest {
    private static final String P = "client.quota.callback.sidecar.";
    private static final KafkaPrincipal ANN = new KafkaPrincipal("User", "ann");

    private final SidecarQuotaCallback callback = new SidecarQuotaCallback();
    private final SidecarAuthorizer authorizer = new SidecarAuthorizer();
    private final Map<String, Object> configs = new HashMap<>(StandardRig.OPEN);
    private volatile String factor = "1.0";
    private RawServer sidecar;

    @BeforeEach
    void configs() throws Exception {
        sidecar =
                new RawServer(
                        (head, out) -> {
                            String tag = "\"" + factor + "\"";
                            if (head.stream().anyMatch(line -> line.endsWith(tag))) {
                                Thread.sleep(100);
                            }
                            String body =
                                    "{\"factor\":" + factor + ",\"users\":{},\"generation\":3,"
                                            + "\"valid_for_ms\":60000}";
                            out.write(RawServer.http("200 OK", "ETag: " + tag + "\r\n", body));
                        });
        configs.put("process.roles", "broker");
        configs.put("metric.reporters", SidecarMetricsReporter.class.getName());
        configs.put(P + "url", sidecar.url().toString());
    }

    @AfterEach
    void close() throws Exception {
        callback.close();
        authorizer.close();
        sidecar.close();
        assertNull(Connections.SHARED.refusals());
        assertFalse(Connections.SHARED.hasAuthorizer());
    }

    private static Object figure(String name) throws Exception {
        return ManagementFactory.getPlatformMBeanServer()
                .getAttribute(new ObjectName("throttlesidecar:type=QuotaCallback"), name);
    }

    private static void await(String name, Object expected) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (!expected.equals(figure(name)) && System.nanoTime() < deadline) {
            Thread.sleep(5);
        }
        assertEquals(expected, figure(name));
    }

    private void isThrottled() throws Exception {
        await("Source", "SIDECAR");
        StandardRig.produce(authorizer, "before", "ann", "t");
        factor = "0.0";
        await("FactorApplied", 0.0);
    }

    /** A request with two topics, one of them denied, has these two results, even in a throttle. */
    @Test
    void answersAsStandardAuthorizer() throws Exception {
        configs.remove("allow.everyone.if.no.acl.found");
        callback.configure(configs);
        StandardRig.started(authorizer, configs);
        StandardAuthorizer plain = StandardRig.started(new StandardAuthorizer(), configs);
        for (StandardAuthorizer each : List.of(authorizer, plain)) {
            each.addAcl(
                    Uuid.randomUuid(),
                    new StandardAcl(
                            ResourceType.TOPIC,
                            "mine",
                            PatternType.LITERAL,
                            "User:ann",
                            "*",
                            AclOperation.WRITE,
                            AclPermissionType.ALLOW));
        }
        for (String state : List.of("free", "throttled")) {
            List<AuthorizationResult> results =
                    StandardRig.produce(authorizer, "before", "ann", "mine", "other");
            assertEquals(
                    List.of(AuthorizationResult.ALLOWED, AuthorizationResult.DENIED), results,
                    state);
            assertEquals(StandardRig.produce(plain, "a", "ann", "mine", "other"), results);
            assertFalse(DeniedRequest.isDue(), "a part of the request lands");
            if (state.equals("free")) {
                isThrottled();
            }
        }
        // A client that may not write gets that answer, and uses up no budget.
        for (int request = 0; request < 5; request++) {
            assertEquals(
                    List.of(AuthorizationResult.DENIED),
                    StandardRig.produce(authorizer, "new", "ann", "other"));
        }
        assertTrue(DeniedRequest.isDue());
        // Nor does it count as a client that writes only to excluded topics.
        Map<String, String> tags = callback.quotaMetricTags(ClientQuotaType.PRODUCE, ANN, "app");
        assertEquals("", tags.get("user"));
        plain.close();
    }

    /**
     * In a throttle, produce requests of a new connection are refused, and its other requests are not.
     */
    @Test
    void refusesProduceRequestsAlone() throws Exception {
        callback.configure(configs);
        StandardRig.started(authorizer, configs);
        isThrottled();
        StandardRig.produce(authorizer, "new-1", "ann", "t");
        assertThrows(
                RefusedException.class, () -> StandardRig.produce(authorizer, "new-2", "ann", "t"));
        for (ApiKeys api : List.of(ApiKeys.FETCH, ApiKeys.METADATA, ApiKeys.INIT_PRODUCER_ID)) {
            authorizer.authorize(
                    StandardRig.context(api, "new-2", "ann", "app"),
                    StandardRig.writes(ResourceType.TOPIC, "t"));
        }
        // In a transaction, Kafka asks twice. The first call has no topic.
        authorizer.authorize(
                StandardRig.context(ApiKeys.PRODUCE, "new-2", "ann", "app"),
                StandardRig.writes(ResourceType.TRANSACTIONAL_ID, "tx"));
        assertEquals(1L, figure("RefusedTotal"));
        assertEquals(1L, figure("RefusedNewConnections"));
        assertEquals(0L, figure("RefusedBelowStopLine"));
        assertEquals(0L, figure("RefusedAfterRelease"));
        assertEquals(true, figure("Refusing"));
        assertTrue((int) figure("ConnectionsKnown") >= 1);
    }

    /** Clients get NOT_ENOUGH_REPLICAS, which they retry, and a message. */
    @Test
    void clientsRetryWhatTheyGet() {
        AtomicInteger logged = new AtomicInteger();
        RefusedException refused = new RefusedException("Try again", logged::incrementAndGet);
        assertEquals(Errors.NOT_ENOUGH_REPLICAS, Errors.forException(refused));
        assertEquals("Try again", ApiError.fromThrowable(refused).message());
        assertEquals(0, logged.get(), "neither of these is a log");
        assertEquals(0, refused.getStackTrace().length);
        assertEquals(1, logged.get());
    }

    /** The request quota mutes the refused connection, and no other request of that client. */
    @Test
    void mutesTheRefusedConnectionAlone() throws Exception {
        callback.configure(configs);
        StandardRig.started(authorizer, configs);
        isThrottled();
        StandardRig.produce(authorizer, "new-1", "ann", "t");
        Metrics metrics = new Metrics(new MetricConfig(), new ArrayList<>(), Time.SYSTEM);
        try (KafkaQuotas requests = new KafkaQuotas("Request", metrics, Time.SYSTEM, callback)) {
            for (int each = 0; each < 3; each++) {
                assertThrows(
                        RefusedException.class,
                        () -> StandardRig.produce(authorizer, "new-2", "ann", "t"));
                assertTrue(requests.record(ANN, "app", 0.01, System.currentTimeMillis()) >= 1000);
                assertEquals(0, requests.record(ANN, "app", 0.01, System.currentTimeMillis()));
            }
        }
        assertEquals(Mute.LIMIT, callback.quotaLimit(ClientQuotaType.REQUEST, Mute.TAGS));
        assertNull(callback.quotaLimit(ClientQuotaType.FETCH, Mute.TAGS));
    }

    /**
     * A controller makes its authorizer before its callback, and a broker after it. Both orders work.
     */
    @Test
    void meetsTheCallbackInEitherOrder() throws Exception {
        StandardRig.started(authorizer, configs);
        StandardRig.produce(authorizer, "early", "ann", "t");
        callback.configure(configs);
        isThrottled();
        StandardRig.produce(authorizer, "new-1", "ann", "t");
        assertThrows(
                RefusedException.class, () -> StandardRig.produce(authorizer, "new-2", "ann", "t"));
        callback.close();
        StandardRig.produce(authorizer, "new-2", "ann", "t");
    }

    /** In combined mode there are two authorizers and two callbacks, which share one state. */
    @Test
    void sharesItsStateInCombinedMode() throws Exception {
        configs.put("process.roles", "broker,controller");
        SidecarAuthorizer controllers = StandardRig.started(new SidecarAuthorizer(), configs);
        SidecarQuotaCallback controllersCallback = new SidecarQuotaCallback();
        controllersCallback.configure(configs);
        callback.configure(configs);
        StandardRig.started(authorizer, configs);
        isThrottled();
        StandardRig.produce(authorizer, "new-1", "ann", "t");
        controllers.close();
        controllersCallback.close();
        assertThrows(
                RefusedException.class, () -> StandardRig.produce(authorizer, "new-2", "ann", "t"));
        assertEquals(1L, figure("RefusedTotal"));
        assertEquals(true, figure("Refusing"));
    }

    /** On a dedicated controller the class behaves like StandardAuthorizer, whatever the settings. */
    @Test
    void doesNothingOnADedicatedController() {
        configs.put("process.roles", "controller");
        configs.put(P + "excluded.topics", "not a topic");
        StandardRig.started(authorizer, configs);
        assertFalse(Connections.SHARED.hasAuthorizer());
    }

    /** The broker reports the number of refusals and their clients to the sidecar, if it can refuse. */
    @Test
    void reportsToTheSidecar() throws Exception {
        callback.configure(configs);
        await("Source", "SIDECAR");
        assertEquals(false, figure("Refusing"));
        StandardRig.started(authorizer, configs);
        isReported("Throttle-Refused: new_connection=0; stop_line=0; release=0");
        isThrottled();
        StandardRig.produce(authorizer, "new-1", "ann", "t");
        assertThrows(
                RefusedException.class, () -> StandardRig.produce(authorizer, "new-2", "ann", "t"));
        isReported(
                "Throttle-Refused: new_connection=1; stop_line=0; release=0; clients=ann/app:1");
        assertFalse(sidecar.heads.get(0).toString().contains("Throttle-Refused"));
    }

    private void isReported(String part) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (reports(part) == 0 && System.nanoTime() < deadline) {
            Thread.sleep(5);
        }
        assertTrue(reports(part) > 0);
    }

    private long reports(String part) {
        return sidecar.heads.stream().filter(head -> head.toString().contains(part)).count();
    }

    /** A version of Kafka that has moved an internal class: nothing is refused, and nothing fails. */
    @Test
    void servesRequestsOfAnUnknownKafka() throws Exception {
        ClassLoader moved = new ClassLoader(getClass().getClassLoader()) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                if (name.equals(RequestContext.class.getName())) {
                    throw new ClassNotFoundException(name);
                }
                Class<?> known = findLoadedClass(name);
                if (known != null || !name.startsWith("throttlesidecar.")) {
                    return known != null ? known : super.loadClass(name, resolve);
                }
                String file = name.replace('.', '/') + ".class";
                try (InputStream in = getParent().getResourceAsStream(file)) {
                    byte[] bytes = in.readAllBytes();
                    return defineClass(name, bytes, 0, bytes.length);
                } catch (IOException unreadable) {
                    throw new ClassNotFoundException(name, unreadable);
                }
            }
        };
        StandardAuthorizer unknown = StandardRig.started(
                (StandardAuthorizer) Class.forName(SidecarAuthorizer.class.getName(), true, moved)
                        .getConstructor()
                        .newInstance(),
                StandardRig.OPEN);
        assertEquals(
                List.of(AuthorizationResult.ALLOWED), StandardRig.produce(unknown, "a", "ann", "t"));
        Class<?> connections = Class.forName(Connections.class.getName(), true, moved);
        Object shared = connections.getField("SHARED").get(null);
        assertEquals(false, connections.getMethod("hasAuthorizer").invoke(shared));
        String problem = (String) connections.getMethod("problem").invoke(shared);
        assertTrue(problem.contains("RequestContext"), problem);
        unknown.close();
    }

    /** A version of Kafka without a method that a request needs: it is served, and the error reported. */
    @Test
    void servesARequestWhoseMethodHasMoved() throws Exception {
        callback.configure(configs);
        StandardRig.started(authorizer, configs);
        RequestContext known = StandardRig.context(ApiKeys.PRODUCE, "a", "ann", "app");
        RequestContext moved = new RequestContext(
                known.header, "a", known.clientAddress, ANN, known.listenerName,
                known.securityProtocol, known.clientInformation, false) {
            @Override
            public String clientId() {
                throw new NoSuchMethodError("clientId");
            }
        };
        assertEquals(
                List.of(AuthorizationResult.ALLOWED),
                authorizer.authorize(moved, StandardRig.writes(ResourceType.TOPIC, "t")));
        assertEquals("error", figure("Fault"));
    }

    /** The broker reports that its authorizer refuses nothing. */
    @Test
    void reportsThatNothingCanBeRefused() {
        Connections connections = new Connections(1);
        CallbackRuntime runtime = LoneRuntime.of(
                Settings.of(Map.of()), connections, RefusalLog.ofBroker(), new MovedClocks(), new Lines());
        connections.cannotRefuse("it moved");
        runtime.apply(Factors.DISABLED);
        assertEquals("not-refused", runtime.enforcement.faults().worst());
    }

    /** A denied transactional id says nothing about the thread's next request, which is another client's. */
    @Test
    void aDeniedTransactionDoesNotCountForAnotherClient() throws Exception {
        callback.configure(configs);
        configs.remove("allow.everyone.if.no.acl.found");
        StandardRig.started(authorizer, configs);
        authorizer.authorize(
                StandardRig.context(ApiKeys.PRODUCE, "m", "mallory", "m"),
                StandardRig.writes(ResourceType.TRANSACTIONAL_ID, "nobody-may"));
        assertFalse(DeniedRequest.isDue());
    }

    /** A pattern that can't match a topic is refused, at the start and at a running broker. */
    @Test
    void checksItsSettings() {
        configs.put(P + "excluded.topics", "a topic");
        ConfigException refused =
                assertThrows(ConfigException.class, () -> callback.configure(configs));
        assertTrue(refused.getMessage().contains("excluded.topics"), refused.getMessage());
        configs.put(P + "excluded.topics", "");
        configs.put(P + "refuse.enabled", "no");
        assertThrows(ConfigException.class, () -> callback.configure(configs));
    }
}
