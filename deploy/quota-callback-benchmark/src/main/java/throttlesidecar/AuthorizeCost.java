package throttlesidecar;

import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;
import throttlesidecar.decision.Factors;
import throttlesidecar.observability.Journal;
import throttlesidecar.quotas.Quotas;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.ExcludedWriters;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.RunningTime;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.TagSets;

/**
 * The cost of authorizing a produce request of one topic: by Kafka's own authorizer, and by ours with
 * nothing throttled, with clients that write to tiered storage's metadata besides, or with a throttle
 * in which all connections wait. Requests go round them.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class AuthorizeCost {

    /** Whose authorizer. */
    @Param({"kafka", "ours-free", "ours-tiered", "ours-stopped"})
    public String authorizer;

    /** How many connections produce. */
    @Param({"10", "10000"})
    public int connections;

    private StandardAuthorizer made;
    private RequestContext[] contexts;
    private List<Action> actions;

    /** One thread's place in the round. */
    @State(Scope.Thread)
    public static class Turn {
        private int next;
    }

    /** Makes the authorizer as a broker does. */
    @Setup
    public void start() {
        Enforcement[] enforcement = {null};
        made =
                authorizer.equals("kafka")
                        ? new StandardAuthorizer()
                        : new SidecarAuthorizer(connections(enforcement));
        made.configure(Map.of("node.id", "1", "allow.everyone.if.no.acl.found", "true"));
        Plugin.wrapInstance(made, new Metrics(), "authorizer.class.name");
        made.completeInitialLoad();
        contexts = new RequestContext[connections];
        for (int each = 0; each < connections; each++) {
            contexts[each] = context(each, "client-" + each);
        }
        if (authorizer.equals("ours-tiered")) {
            // One of each user, as where brokers have no principal of their own: it costs the most.
            // Before all others, since a connection that is known writes to other topics.
            for (int each = 0; each < Math.min(100, connections); each++) {
                made.authorize(
                        context(each, "__remote_log_metadata_client_1_producer"),
                        writeTo("__remote_log_metadata"));
            }
        }
        actions = writeTo("t");
        for (RequestContext context : contexts) {
            made.authorize(context, actions);
        }
        if (authorizer.equals("ours-stopped")) {
            enforcement[0].apply(
                    new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1));
        }
    }

    private static RequestContext context(int each, String clientId) {
        return new RequestContext(
                new RequestHeader(ApiKeys.PRODUCE, (short) 12, clientId, 1),
                "10.0.0.1:9092-10.0.0.2:" + (20_000 + each) + "-0-" + each,
                InetAddress.getLoopbackAddress(),
                new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "user-" + each % 100),
                new ListenerName("PLAIN"),
                SecurityProtocol.PLAINTEXT,
                ClientInformation.EMPTY,
                false);
    }

    private static List<Action> writeTo(String topic) {
        ResourcePattern pattern =
                new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL);
        return List.of(new Action(AclOperation.WRITE, pattern, 1, true, true));
    }

    private static Connections connections(Enforcement[] made) {
        Connections table = new Connections(65_536);
        TagSets tagSets = new TagSets();
        Settings settings = Settings.of(Map.of());
        Quotas quotas = new Quotas(() -> settings, true);
        made[0] = new Enforcement(tagSets, quotas, () -> settings, Clocks.SYSTEM);
        table.refusals(
                new Refusals(
                        table,
                        quotas,
                        tagSets,
                        made[0],
                        () -> settings,
                        new ExcludedWriters(quotas::settingsChanged),
                        RefusalLog.ofBroker(),
                        Clocks.SYSTEM,
                        new RunningTime(Clocks.SYSTEM),
                        new NoJournal()));
        return table;
    }

    /** What would be logged is not measured. */
    private static final class NoJournal implements Journal {
        @Override
        public void info(String line) {}

        @Override
        public void warn(String line) {}
    }

    /** Ends it. */
    @TearDown
    public void stop() throws Exception {
        made.close();
    }

    /** A request, by one thread. */
    @Benchmark
    @Threads(1)
    public List<AuthorizationResult> authorize(Turn turn) {
        return made.authorize(contexts[turn.next++ % connections], actions);
    }

    /** The same by four threads at once. */
    @Benchmark
    @Threads(4)
    public List<AuthorizationResult> authorizeByFour(Turn turn) {
        return made.authorize(contexts[turn.next++ % connections], actions);
    }
}
