package throttlesidecar;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import throttlesidecar.quotas.Quotas;
import throttlesidecar.refusal.Mute;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.TagSet;

/**
 * Applies the sidecar's throttle factor in a broker. This is the class for {@code
 * client.quota.callback.class}. While the factor is 1.0, or the callback is switched off, Kafka's own
 * quotas apply.
 *
 * <p>Kafka calls most methods for each request, on its request threads, so they use no I/O, and no lock but short
 * ones while a throttle applies.
 * Another thread reads the sidecar, see {@link CallbackRuntime}.
 *
 * <p>On a dedicated controller the callback is off, whatever the settings. Some platforms, such as
 * Strimzi, set the same properties on all nodes of a cluster, so controllers get them too. Controllers
 * receive no produce requests, and mutations are charged as by Kafka's own callback.
 *
 * <p>The class is AutoCloseable because newer versions of Kafka (such as 4.3.1) close no other plugins.
 */
public final class SidecarQuotaCallback implements ClientQuotaCallback, Reconfigurable, AutoCloseable {
    /** The number of the settings that each quota type's limits were last renewed for, by ordinal. */
    private final AtomicLongArray renewed = new AtomicLongArray(ClientQuotaType.values().length);

    private final AtomicBoolean joined = new AtomicBoolean();
    private volatile boolean off;
    private volatile CallbackRuntime runtime;

    /** For Kafka. */
    public SidecarQuotaCallback() {}

    /** For tests: uses a runtime that reads no sidecar. */
    SidecarQuotaCallback(CallbackRuntime runtime) {
        this.runtime = runtime;
    }

    /**
     * Starts to read the sidecar, except on a dedicated controller.
     *
     * @throws ConfigException the settings are invalid, and the broker does not start.
     */
    @Override
    public void configure(Map<String, ?> configs) {
        if (Settings.areOfDedicatedController(configs)) {
            runtime = CallbackRuntime.idle();
            off = true;
            return;
        }
        // Where the metadata log has a volume of its own, this is early enough too.
        ReserveRelease.atStart(configs);
        runtime = CallbackRuntime.join(Settings.atStart(configs), nodeId(configs));
        joined.set(true);
        for (ClientQuotaType type : ClientQuotaType.values()) {
            renewed.set(type.ordinal(), runtime.changes());
        }
    }

    private static Integer nodeId(Map<String, ?> configs) {
        for (String key : new String[] {"node.id", "broker.id"}) {
            Object id = configs.get(key);
            if (id != null && id.toString().trim().matches("[0-9]{1,10}")) {
                return Integer.valueOf(id.toString().trim());
            }
        }
        return null;
    }

    @Override
    public Map<String, String> quotaMetricTags(
            ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        if (type == ClientQuotaType.REQUEST && Mute.isDue(principal.getName(), clientId)) {
            return Mute.TAGS;
        }
        Quotas.Client client = runtime.quotas.client(principal.getName(), clientId);
        if (type == ClientQuotaType.PRODUCE) {
            Enforcement enforcement = runtime.enforcement;
            try {
                enforcement.beforeRecord(client.tagSet(runtime.tagSets), principal, clientId);
            } catch (RuntimeException | LinkageError error) {
                enforcement.failed(error);
            }
        }
        return client.tags(type);
    }

    @Override
    public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
        if (type == ClientQuotaType.REQUEST && Mute.TAGS.equals(tags)) {
            return Mute.LIMIT;
        }
        String user = tags.get(TagSet.USER_TAG);
        String clientId = tags.get(TagSet.CLIENT_ID_TAG);
        return type == ClientQuotaType.PRODUCE
                ? runtime.enforcement.limit(user, clientId)
                : runtime.quotas.limit(type, user, clientId);
    }

    @Override
    public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double value) {
        runtime.quotas.update(type, entity, value);
    }

    @Override
    public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
        runtime.quotas.remove(type, entity);
    }

    /**
     * Whether Kafka's limits are out of date, because the settings, which include static quotas, have
     * changed. Limits of PRODUCE are never out of date, since {@code TagSetConfig} computes them.
     */
    @Override
    public boolean quotaResetRequired(ClientQuotaType type) {
        long changes = runtime.changes();
        return type != ClientQuotaType.PRODUCE
                && renewed.get(type.ordinal()) != changes
                && renewed.getAndSet(type.ordinal(), changes) != changes;
    }

    /** For Kafka before 5.0, which removes the method; hence no annotation. */
    public boolean updateClusterMetadata(Cluster cluster) {
        return false;
    }

    @Override
    public Set<String> reconfigurableConfigs() {
        return Settings.RECONFIGURABLE;
    }

    @Override
    public void validateReconfiguration(Map<String, ?> configs) {
        // If the callback is off, the files that the settings name need not exist.
        if (!off) {
            Settings settings = Settings.of(configs);
            CallbackRuntime known = runtime;
            if (known != null) {
                known.check(settings);
            }
        }
    }

    @Override
    public void reconfigure(Map<String, ?> configs) {
        if (!off) {
            runtime.adopt(Settings.of(configs));
        }
    }

    @Override
    public void close() {
        // Requests in progress still use the runtime.
        if (joined.getAndSet(false)) {
            CallbackRuntime.leave();
        }
    }
}
