package throttlesidecar.quotas;

import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Sanitized;
import throttlesidecar.throttling.OwnLimit;
import throttlesidecar.throttling.TagSet;
import throttlesidecar.throttling.TagSets;

/**
 * The tags of every client and the quota of those tags, whatever the factor.
 *
 * <p>Two things come on top of Kafka's own levels ({@link QuotaLevels}): a client that no quota names
 * shares the broker's static quota with all others like it, under the tags ("", ""), where one is
 * set; and for PRODUCE, users that are excluded or have a factor of their own must not share tags
 * with others, so they have (user, client-id) instead of the levels' ("", client-id); clients that
 * are excluded by their client-id have them in place of (user, "") too. In the static quota, of any
 * type, excluded users have no part; those with a factor of their own have one for
 * each client-id.
 *
 * <p>Resolved clients are cached by user and client-id, so that a request costs two look-ups.
 */
public final class Quotas implements OwnLimit {
    /** Client-ids may be random; beyond so many clients, of 0.6 kB each, all are resolved anew. */
    static final int MOST_CLIENTS = 16_384;

    private final Map<ClientQuotaType, QuotaLevels> books = new EnumMap<>(ClientQuotaType.class);
    private final Supplier<Settings> settings;
    private final TagSets tagSets;
    private final Map<String, Map<String, Client>> clients = new ConcurrentHashMap<>();
    private final AtomicInteger count = new AtomicInteger();
    private final AtomicLong generation = new AtomicLong();
    private volatile Set<String> throttledUsers = Set.of();

    public Quotas(Supplier<Settings> settings, TagSets tagSets, boolean forgetsRemovedKinds) {
        this.settings = settings;
        this.tagSets = tagSets;
        for (ClientQuotaType type : ClientQuotaType.values()) {
            books.put(type, new QuotaLevels(forgetsRemovedKinds));
        }
    }

    /** A client as it was resolved. */
    public static final class Client {
        private final long version;
        private final Map<ClientQuotaType, Map<String, String>> tags;
        private volatile TagSet tagSet;

        private Client(long version, Map<ClientQuotaType, Map<String, String>> tags) {
            this.version = version;
            this.tags = tags;
        }

        /** Its tags, never modified. */
        public Map<String, String> tags(ClientQuotaType type) {
            return tags.get(type);
        }

        /** The tag set of its produce requests; null before the first of them. */
        public TagSet tagSet(TagSets tagSets) {
            TagSet known = tagSet;
            if (known == null || known.metric() == null) {
                Map<String, String> produce = tags.get(ClientQuotaType.PRODUCE);
                known = tagSets.find(
                        produce.get(TagSet.USER_TAG), produce.get(TagSet.CLIENT_ID_TAG));
                tagSet = known;
            }
            return known;
        }
    }

    public void update(ClientQuotaType type, ClientQuotaEntity entity, double value) {
        books.get(type).update(entity, value);
        generation.incrementAndGet();
    }

    public void remove(ClientQuotaType type, ClientQuotaEntity entity) {
        books.get(type).remove(entity);
        generation.incrementAndGet();
    }

    /** Users, sanitised, that have a throttle of their own, or its ramp, from now on. */
    public void throttledUsers(Set<String> users) {
        if (!users.equals(throttledUsers)) {
            throttledUsers = Set.copyOf(users);
            generation.incrementAndGet();
        }
    }

    /** Puts changed settings in force. */
    public void settingsChanged() {
        generation.incrementAndGet();
    }

    /**
     * A client with its tags.
     *
     * @param principal the principal's name, as it is.
     * @param clientId may be null or empty.
     */
    public Client client(String principal, String clientId) {
        String id = clientId == null ? "" : clientId;
        long version = generation.get();
        Map<String, Client> ofPrincipal = clients.get(principal);
        Client known = ofPrincipal == null ? null : ofPrincipal.get(id);
        return known != null && known.version == version ? known : resolve(principal, id, version);
    }

    /** How many clients are cached. */
    int cached() {
        return count.get();
    }

    private Client resolve(String principal, String clientId, long version) {
        String user = Sanitized.of(principal);
        Map<ClientQuotaType, Map<String, String>> tags = new EnumMap<>(ClientQuotaType.class);
        for (ClientQuotaType type : ClientQuotaType.values()) {
            Map<String, String> ofType = tags(type, user, clientId);
            // Most often the same for all types, and there are many clients.
            tags.put(
                    type, tags.values().stream().filter(ofType::equals).findFirst().orElse(ofType));
        }
        Client resolved = new Client(version, tags);
        if (count.get() >= MOST_CLIENTS) {
            clients.clear();
            count.set(0);
        }
        Map<String, Client> ofPrincipal =
                clients.computeIfAbsent(principal, name -> new ConcurrentHashMap<>());
        if (ofPrincipal.put(clientId, resolved) == null) {
            count.incrementAndGet();
        }
        return resolved;
    }

    private Map<String, String> tags(ClientQuotaType type, String user, String clientId) {
        QuotaLevels book = books.get(type);
        boolean ownTags = type == ClientQuotaType.PRODUCE && hasOwnTags(user, clientId);
        if (settings.get().staticQuota(type) != null && !book.names(user, clientId)) {
            return ownTags || settings.get().excludes(user, clientId)
                    ? TagSet.tagsOf(user, clientId)
                    : TagSet.tagsOf("", "");
        }
        Map<String, String> tags = book.tags(user, clientId);
        boolean shared =
                tags.get(TagSet.USER_TAG).isEmpty()
                        || settings.get().excludesClient(user, clientId);
        return ownTags && shared ? TagSet.tagsOf(user, clientId) : tags;
    }

    private boolean hasOwnTags(String user, String clientId) {
        return settings.get().excludes(user, clientId) || throttledUsers.contains(user);
    }

    /** The quota of tags; null for none. */
    public Double limit(ClientQuotaType type, String user, String clientId) {
        QuotaLevels book = books.get(type);
        if (user.isEmpty() && clientId.isEmpty()) {
            return settings.get().staticQuota(type);
        }
        if (type == ClientQuotaType.PRODUCE && !user.isEmpty() && hasOwnTags(user, clientId)) {
            Double limit = book.limit(user, clientId);
            if (limit == null) {
                limit = book.limitOfClient(user, clientId);
            }
            boolean unnamed = limit == null && !settings.get().excludes(user, clientId);
            return unnamed ? settings.get().staticQuota(type) : limit;
        }
        return book.limit(user, clientId);
    }

    @Override
    public Double of(String user, String clientId) {
        return limit(ClientQuotaType.PRODUCE, user, clientId);
    }

    @Override
    public long version() {
        return generation.get();
    }
}
