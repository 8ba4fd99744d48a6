package throttlesidecar.quotas;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import throttlesidecar.support.Sanitized;
import throttlesidecar.throttling.TagSet;

/**
 * The quotas of one type that operators have set, and which of them a client has.
 *
 * <p>With a callback installed Kafka resolves no quota by itself, so its eight levels are here, the
 * most specific first: (user, client-id), (user, default client-id), user, (default user,
 * client-id), (default user, default client-id), default user, client-id, default client-id. Clients
 * that share a quota share their metric tags, which are Kafka's own: levels 1, 2, 4 and 5 have (user,
 * client-id), 3 and 6 (user, ""), 7, 8 and no match ("", client-id). While quotas of one kind only
 * are set, every client has that kind's tags, whether or not it has a quota.
 *
 * <p>Example: with a quota for user ann and one for client-id etl, ann's tags are (ann, "") and those
 * of bob with client-id etl ("", etl).
 *
 * <p>Request threads read without a lock; changes come from one thread at a time per callback, of
 * which combined mode has two.
 */
final class QuotaLevels {
    private static final int CLIENTS = 1;
    private static final int USERS = 2;
    private static final int USERS_CLIENTS = 4;

    private final boolean forgetsRemovedKinds;

    /** User, or default for null -> client-id, default or none -> quota. */
    private final Map<Part, Map<Part, Double>> quotas = new ConcurrentHashMap<>();

    private final Map<Integer, Set<Key>> entities = new ConcurrentHashMap<>();
    private volatile int kinds;
    private volatile long version;

    /**
     * Without a quota.
     *
     * @param forgetsRemovedKinds see {@link KafkaVersion#forgetsRemovedKinds}.
     */
    QuotaLevels(boolean forgetsRemovedKinds) {
        this.forgetsRemovedKinds = forgetsRemovedKinds;
    }

    /** Changes with every change of a quota. */
    long version() {
        return version;
    }

    /** Sets the quota of an entity; units are the quota type's. */
    synchronized void update(ClientQuotaEntity entity, double value) {
        Key key = Key.of(entity);
        entities.computeIfAbsent(key.kind(), kind -> new HashSet<>()).add(key);
        kinds |= key.kind();
        quotas.computeIfAbsent(key.user, user -> new ConcurrentHashMap<>()).put(key.client, value);
        version++;
    }

    /** Removes the quota of an entity, if it has one. */
    synchronized void remove(ClientQuotaEntity entity) {
        Key key = Key.of(entity);
        Set<Key> ofKind = entities.computeIfAbsent(key.kind(), kind -> new HashSet<>());
        ofKind.remove(key);
        if (!forgetsRemovedKinds) {
            kinds |= key.kind();
        } else if (ofKind.isEmpty()) {
            kinds &= ~key.kind();
        }
        quotas.computeIfPresent(key.user, (user, ofUser) -> {
            ofUser.remove(key.client);
            return ofUser.isEmpty() ? null : ofUser;
        });
        version++;
    }

    /**
     * The tags of a client, by which it shares its quota.
     *
     * @param user sanitised.
     * @param clientId as it is; may be empty.
     */
    Map<String, String> tags(String user, String clientId) {
        switch (kinds) {
            case 0:
            case CLIENTS:
                return TagSet.tagsOf("", clientId);
            case USERS:
                return TagSet.tagsOf(user, "");
            case USERS_CLIENTS:
                return TagSet.tagsOf(user, clientId);
            default:
                switch (level(user, clientId)) {
                    case 1:
                    case 2:
                    case 4:
                    case 5:
                        return TagSet.tagsOf(user, clientId);
                    case 3:
                    case 6:
                        return TagSet.tagsOf(user, "");
                    default:
                        return TagSet.tagsOf("", clientId);
                }
        }
    }

    /** The quota of tags; null for none. */
    Double limit(String user, String clientId) {
        if (!user.isEmpty() && !clientId.isEmpty()) {
            return first(user, clientId, 1, 2, 4, 5);
        }
        if (!user.isEmpty()) {
            return first(user, clientId, 3, 6);
        }
        return clientId.isEmpty() ? null : first(user, clientId, 7, 8);
    }

    /** The quota of a client by the tags of its level, not by others; null for none. */
    Double limitOfClient(String user, String clientId) {
        Map<String, String> tags = tags(user, clientId);
        return limit(tags.get(TagSet.USER_TAG), tags.get(TagSet.CLIENT_ID_TAG));
    }

    /** Whether any level names the client. */
    boolean names(String user, String clientId) {
        return level(user, clientId) != 0;
    }

    private int level(String user, String clientId) {
        for (int level = 1; level <= 8; level++) {
            if (at(level, user, clientId) != null) {
                return level;
            }
        }
        return 0;
    }

    private Double first(String user, String clientId, int... levels) {
        for (int level : levels) {
            Double found = at(level, user, clientId);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private Double at(int level, String user, String clientId) {
        Part userPart = level <= 3 ? Part.of(user) : level <= 6 ? Part.DEFAULT : Part.NONE;
        Map<Part, Double> ofUser = quotas.get(userPart);
        if (ofUser == null) {
            return null;
        }
        switch (level) {
            case 1:
            case 4:
            case 7:
                return ofUser.get(Part.of(clientId));
            case 2:
            case 5:
            case 8:
                return ofUser.get(Part.DEFAULT);
            default:
                return ofUser.get(Part.NONE);
        }
    }

    /** The user's or the client-id's half of an entity: a name, the default, or not there. */
    private static final class Part {
        static final Part DEFAULT = new Part(null);
        static final Part NONE = new Part(null);

        private final String name;

        private Part(String name) {
            this.name = name;
        }

        static Part of(String name) {
            return new Part(name);
        }

        @Override
        public boolean equals(Object other) {
            return this == other
                    || name != null && other instanceof Part && name.equals(((Part) other).name);
        }

        @Override
        public int hashCode() {
            return name == null ? System.identityHashCode(this) : name.hashCode();
        }
    }

    /** An entity by its two halves, the user's name sanitised. */
    private static final class Key {
        private final Part user;
        private final Part client;

        private Key(Part user, Part client) {
            this.user = user;
            this.client = client;
        }

        static Key of(ClientQuotaEntity entity) {
            Part user = Part.NONE;
            Part client = Part.NONE;
            for (ConfigEntity part : entity.configEntities()) {
                switch (part.entityType()) {
                    case USER:
                        user = Part.of(Sanitized.of(part.name()));
                        break;
                    case DEFAULT_USER:
                        user = Part.DEFAULT;
                        break;
                    case CLIENT_ID:
                        client = Part.of(part.name());
                        break;
                    case DEFAULT_CLIENT_ID:
                        client = Part.DEFAULT;
                        break;
                    default:
                        throw new IllegalArgumentException("unknown: " + part.entityType());
                }
            }
            return new Key(user, client);
        }

        int kind() {
            if (user == Part.NONE) {
                return CLIENTS;
            }
            return client == Part.NONE ? USERS : USERS_CLIENTS;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key
                    && user.equals(((Key) other).user)
                    && client.equals(((Key) other).client);
        }

        @Override
        public int hashCode() {
            return 31 * user.hashCode() + client.hashCode();
        }
    }
}
