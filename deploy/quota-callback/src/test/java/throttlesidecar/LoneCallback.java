package throttlesidecar;

import java.util.Map;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;

/** Ours as a broker has it, without its connection to the sidecar. */
final class LoneCallback implements ClientQuotaCallback {
    private final Quotas quotas;
    private final TagSets tagSets;
    private final Enforcement enforcement;

    LoneCallback(Quotas quotas, TagSets tagSets, Enforcement enforcement) {
        this.quotas = quotas;
        this.tagSets = tagSets;
        this.enforcement = enforcement;
    }

    @Override
    public Map<String, String> quotaMetricTags(
            ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        Quotas.Client client = quotas.client(principal.getName(), clientId);
        if (type == ClientQuotaType.PRODUCE) {
            enforcement.beforeRecord(client.tagSet(tagSets), principal, clientId);
        }
        return client.tags(type);
    }

    @Override
    public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
        return type == ClientQuotaType.PRODUCE
                ? enforcement.limit(tags.get("user"), tags.get("client-id"))
                : quotas.limit(type, tags.get("user"), tags.get("client-id"));
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
