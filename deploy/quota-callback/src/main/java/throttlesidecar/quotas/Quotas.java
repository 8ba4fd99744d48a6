package throttlesidecar.quotas;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Recent;
import throttlesidecar.support.Sanitized;
import throttlesidecar.throttling.OwnLimit;
import throttlesidecar.throttling.TagSet;
import throttlesidecar.throttling.TagSets;

/**
 * The tags of each client and the quota of those tags, whatever the factor.
 *
 * <p>There are three differences from Kafka's own levels ({@link QuotaLevels}). First, all clients
 * without a quota of an operator share the broker's static quota, if one is set, under the tags ("",
 * "").
 *
 * <p>Second, while nobody has a quota of a type other than PRODUCE, all clients share a few tags. With
 * a callback Kafka enables all types and makes two metrics or more for each client's tags of each type.
 *
 * <p>Third, for PRODUCE, users that are excluded or have a factor of their own must not share tags
 * with others. So they have (user, client-id) instead of the levels' ("", client-id). Clients that are
 * excluded by their client-id have these tags instead of (user, "") too. A static quota of any type
 * does not apply to excluded users; users with a factor of their own have one static quota for each
 * client-id.
 */
public final class Quotas implements OwnLimit {
    /** The most clients that are cached, at 0.6 kB each, since client-ids may be random. */
    static final int MOST_CLIENTS = 16_384;

    /** The most characters of a cached client; any client may send a client-id of 32 kB. */
    private static final int LONGEST_CACHED = 512;

    /** More than one, since threads that record with the same tags wait for each other. */
    private static final int SHARDS = 16;

    /** Tags that no client has otherwise: parentheses are encoded in a user's name. */
    private static final List<Map<String, String>> WITHOUT_QUOTAS =
            IntStream.range(0, SHARDS)
                    .mapToObj(shard -> TagSet.tagsOf("(no quota)", Integer.toString(shard)))
                    .collect(Collectors.toUnmodifiableList());

    private final Map<ClientQuotaType, QuotaLevels> levels = new EnumMap<>(ClientQuotaType.class);
    private final Supplier<Settings> settings;

    /** By principal and client-id. */
    private final Recent<List<String>, Client> clients = new Recent<>(2 * MOST_CLIENTS);
    private final AtomicLong version = new AtomicLong();
    private volatile Set<String> throttledUsers = Set.of();

    public Quotas(Supplier<Settings> settings, boolean forgetsRemovedKinds) {
        this.settings = settings;
        for (ClientQuotaType type : ClientQuotaType.values()) {
            levels.put(type, new QuotaLevels(forgetsRemovedKinds));
        }
    }

    public static final class Client {
        private final long version;
        private final Map<ClientQuotaType, Map<String, String>> tags;
        private volatile TagSet tagSet;

        private Client(long version, Map<ClientQuotaType, Map<String, String>> tags) {
            this.version = version;
            this.tags = tags;
        }

        /** The client's tags, never modified. */
        public Map<String, String> tags(ClientQuotaType type) {
            return tags.get(type);
        }

        /** The tag set of the client's produce requests; null before the first of them. */
        public TagSet tagSet(TagSets tagSets) {
            TagSet known = tagSet;
            if (known == null || known.metric() == null) {
                Map<String, String> produce = tags.get(ClientQuotaType.PRODUCE);
                known = tagSets.find(produce.get(TagSet.USER_TAG), produce.get(TagSet.CLIENT_ID_TAG));
                tagSet = known;
            }
            return known;
        }
    }

    public void update(ClientQuotaType type, ClientQuotaEntity entity, double value) {
        levels.get(type).update(entity, value);
        version.incrementAndGet();
    }

    public void remove(ClientQuotaType type, ClientQuotaEntity entity) {
        levels.get(type).remove(entity);
        version.incrementAndGet();
    }

    /** Sets the users, sanitised, that have a throttle of their own or its ramp. */
    public void throttledUsers(Set<String> users) {
        if (!users.equals(throttledUsers)) {
            throttledUsers = Set.copyOf(users);
            version.incrementAndGet();
        }
    }

    /** Resolves clients again, since the settings have changed. */
    public void settingsChanged() {
        version.incrementAndGet();
    }

    /**
     * A client with its tags.
     *
     * @param principal the principal's name, not sanitised.
     * @param clientId may be null or empty.
     */
    public Client client(String principal, String clientId) {
        String id = clientId == null ? "" : clientId;
        long now = version.get();
        if (principal.length() + id.length() > LONGEST_CACHED) {
            return resolve(Sanitized.of(principal), id, now);
        }
        List<String> key = List.of(principal, id);
        Client known = clients.get(key);
        if (known != null && known.version == now) {
            return known;
        }
        Client resolved = resolve(Sanitized.of(principal), id, now);
        clients.remove(key);
        clients.put(key, resolved);
        return resolved;
    }

    int cached() {
        return clients.size();
    }

    private Client resolve(String user, String clientId, long now) {
        Map<ClientQuotaType, Map<String, String>> tags = new EnumMap<>(ClientQuotaType.class);
        for (ClientQuotaType type : ClientQuotaType.values()) {
            Map<String, String> ofType = tags(type, user, clientId);
            // Tags are usually the same for all types, and sharing them saves memory.
            tags.put(type, tags.values().stream().filter(ofType::equals).findFirst().orElse(ofType));
        }
        return new Client(now, tags);
    }

    private Map<String, String> tags(ClientQuotaType type, String user, String clientId) {
        QuotaLevels ofType = levels.get(type);
        boolean isOff = ofType.areOff() && settings.get().staticQuota(type) == null;
        if (isOff && type != ClientQuotaType.PRODUCE) {
            return WITHOUT_QUOTAS.get(Math.floorMod(31 * user.hashCode() + clientId.hashCode(), SHARDS));
        }
        boolean ownTags = type == ClientQuotaType.PRODUCE && hasOwnTags(user, clientId);
        if (settings.get().staticQuota(type) != null && !ofType.names(user, clientId)) {
            return ownTags || settings.get().excludes(user, clientId)
                    ? TagSet.tagsOf(user, clientId)
                    : TagSet.tagsOf("", "");
        }
        Map<String, String> tags = ofType.tags(user, clientId);
        boolean shared =
                tags.get(TagSet.USER_TAG).isEmpty() || settings.get().excludesClient(user, clientId);
        return ownTags && shared ? TagSet.tagsOf(user, clientId) : tags;
    }

    private boolean hasOwnTags(String user, String clientId) {
        return settings.get().excludes(user, clientId) || throttledUsers.contains(user);
    }

    /** The quota of tags; null for none. */
    public Double limit(ClientQuotaType type, String user, String clientId) {
        QuotaLevels ofType = levels.get(type);
        if (user.isEmpty() && clientId.isEmpty()) {
            return settings.get().staticQuota(type);
        }
        Double limit = ofType.limit(user, clientId);
        if (type == ClientQuotaType.PRODUCE && !user.isEmpty() && hasOwnTags(user, clientId)) {
            limit = limit == null ? ofType.limitOfClient(user, clientId) : limit;
            boolean isUnnamed = limit == null && !settings.get().excludes(user, clientId);
            return isUnnamed ? settings.get().staticQuota(type) : limit;
        }
        return limit;
    }

    @Override
    public Double of(String user, String clientId) {
        return limit(ClientQuotaType.PRODUCE, user, clientId);
    }

    @Override
    public long version() {
        return version.get();
    }
}
