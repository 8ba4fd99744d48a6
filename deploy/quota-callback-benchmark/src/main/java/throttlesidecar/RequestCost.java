package throttlesidecar;

import io.strimzi.kafka.quotas.StaticQuotaCallback;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.kafka.server.quota.QuotaType;
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
import throttlesidecar.quotas.Quotas;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.TagSets;

/**
 * The cost of the quota of a produce request, in Kafka's own quota manager: with Kafka's callback,
 * with ours free and stopped, and with the plugin's. Each entity is a user with a quota, and
 * requests go round them.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 3, time = 1)
public class RequestCost {

    /** Whose callback. */
    @Param({"kafka", "ours-free", "ours-stopped", "plugin"})
    public String callback;

    /** How many users with a quota. */
    @Param({"10", "10000"})
    public int entities;

    private ClientQuotaManager manager;
    private Session[] sessions;

    /** One thread's place in the round. */
    @State(Scope.Thread)
    public static class Turn {
        private int next;
    }

    /** Makes the manager as a broker does. */
    @Setup
    public void start() throws Exception {
        TagSets tagSets = new TagSets();
        Metrics metrics =
                new Metrics(
                        new MetricConfig(),
                        new ArrayList<>(List.of(new SidecarMetricsReporter(tagSets))),
                        Time.SYSTEM);
        Enforcement[] enforcement = {null};
        ClientQuotaCallback made = callback(tagSets, enforcement);
        Optional<Plugin<ClientQuotaCallback>> plugin =
                Optional.ofNullable(made)
                        .map(each -> Plugin.wrapInstance(each, metrics, "client.quota.callback"));
        manager =
                new ClientQuotaManager(
                        new ClientQuotaManagerConfig(11, 1),
                        metrics,
                        QuotaType.PRODUCE,
                        Time.SYSTEM,
                        "",
                        plugin);
        sessions = new Session[entities];
        for (int each = 0; each < entities; each++) {
            KafkaPrincipal user = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "user-" + each);
            sessions[each] = new Session(user, InetAddress.getLoopbackAddress());
            // All before any is recorded: with a callback each change walks over all metrics.
            manager.updateQuota(
                    Optional.of(new ClientQuotaManager.UserEntity("user-" + each)),
                    Optional.empty(),
                    Optional.of(Quota.upperBound(1e15)));
        }
        for (Session session : sessions) {
            manager.recordAndGetThrottleTimeMs(session, "c", 1000, System.currentTimeMillis());
        }
        if (enforcement[0] != null && callback.equals("ours-stopped")) {
            enforcement[0].apply(
                    new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1));
        }
    }

    private ClientQuotaCallback callback(TagSets tagSets, Enforcement[] made) {
        switch (callback) {
            case "kafka":
                return null;
            case "plugin":
                StaticQuotaCallback plugin = new StaticQuotaCallback();
                Map<String, Object> configs = new HashMap<>();
                configs.put("broker.id", "1");
                configs.put("client.quota.callback.static.produce", "1e15");
                // It polls no broker: there is no limit to compare volumes with.
                configs.put(
                        "client.quota.callback.static.kafka.admin.bootstrap.servers",
                        "127.0.0.1:9");
                plugin.configure(configs);
                return plugin;
            default:
                Settings settings = Settings.of(Map.of());
                Quotas quotas = new Quotas(() -> settings, true);
                made[0] = new Enforcement(tagSets, quotas, () -> settings, Clocks.SYSTEM);
                tagSets.enforcement(made[0]);
                return new Ours(quotas, tagSets, made[0]);
        }
    }

    /** Ends the manager's thread. */
    @TearDown
    public void stop() {
        manager.shutdown();
    }

    /** A request of 1 kB, by one thread. */
    @Benchmark
    @Threads(1)
    public int request(Turn turn) {
        return record(turn);
    }

    /** The same by four threads at once. */
    @Benchmark
    @Threads(4)
    public int requestOfFour(Turn turn) {
        return record(turn);
    }

    private int record(Turn turn) {
        Session session = sessions[turn.next++ % entities];
        return manager.recordAndGetThrottleTimeMs(session, "c", 1000, System.currentTimeMillis());
    }

    /** SidecarQuotaCallback without its connection to a sidecar. */
    private static final class Ours implements ClientQuotaCallback {
        private final Quotas quotas;
        private final TagSets tagSets;
        private final Enforcement enforcement;

        Ours(Quotas quotas, TagSets tagSets, Enforcement enforcement) {
            this.quotas = quotas;
            this.tagSets = tagSets;
            this.enforcement = enforcement;
        }

        @Override
        public Map<String, String> quotaMetricTags(
                ClientQuotaType type, KafkaPrincipal principal, String clientId) {
            Quotas.Client client = quotas.client(principal.getName(), clientId);
            enforcement.beforeRecord(client.tagSet(tagSets));
            return client.tags(type);
        }

        @Override
        public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
            return enforcement.limit(tags.get("user"), tags.get("client-id"));
        }

        @Override
        public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double value) {
            quotas.update(type, entity, value);
        }

        @Override
        public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
            quotas.remove(type, entity);
        }

        @Override
        public boolean quotaResetRequired(ClientQuotaType type) {
            return false;
        }

        @Override
        public boolean updateClusterMetadata(Cluster cluster) {
            return false;
        }

        @Override
        public void configure(Map<String, ?> configs) {}

        @Override
        public void close() {}
    }
}
