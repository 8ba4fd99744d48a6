package throttlesidecar.quotas;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import throttlesidecar.support.KafkaVersion;
import throttlesidecar.support.Sanitized;
import throttlesidecar.throttling.TagSet;

/**
 * The quotas of one type that operators have set. Finds the quota that applies to a client.
 *
 * <p>With a callback, Kafka resolves no quota itself, so this class has Kafka's eight levels, the most
 * specific first: (user, client-id), (user, default client-id), user, (default user, client-id),
 * (default user, default client-id), default user, client-id, default client-id. Clients that share a
 * quota share their metric tags, as in Kafka: levels 1, 2, 4 and 5 have (user, client-id), 3 and 6 have
 * (user, ""), and 7, 8 and no match have ("", client-id). While only quotas of one kind are set, every
 * client has that kind's tags, whether or not it has a quota.
 *
 * <p>Example: with a quota for user ann and one for client-id etl, the tags of ann are (ann, ""), and
 * those of bob with client-id etl are ("", etl).
 *
 * <p>Request threads read without a lock. Changes come from one thread at a time per callback, and
 * combined mode has two callbacks.
 */
final class QuotaLevels {
    private static final int CLIENTS = 1;
    private static final int USERS = 2;
    private static final int USERS_CLIENTS = 4;

    /** Stands for the default user or the default client-id of an entity, where others have a name. */
    private static final Object DEFAULT = new Object();

    /** Stands for the user or the client-id that an entity does not have. */
    private static final Object NONE = new Object();

    private final boolean forgetsRemovedKinds;

    /** Quotas by user and client-id, each of which is a name, DEFAULT or NONE. */
    private final Map<Object, Map<Object, Double>> quotas = new ConcurrentHashMap<>();

    private volatile int kinds;

    /**
     * At first, there are no quotas.
     *
     * @param forgetsRemovedKinds see {@link KafkaVersion#forgetsRemovedKinds}.
     */
    QuotaLevels(boolean forgetsRemovedKinds) {
        this.forgetsRemovedKinds = forgetsRemovedKinds;
    }

    /** Sets the quota of an entity, in the unit of the quota type. */
    synchronized void update(ClientQuotaEntity entity, double value) {
        Key key = Key.of(entity);
        kinds |= key.kind();
        quotas.computeIfAbsent(key.user, user -> new ConcurrentHashMap<>()).put(key.client, value);
    }

    /** Removes the quota of an entity, if it has one. */
    synchronized void remove(ClientQuotaEntity entity) {
        Key key = Key.of(entity);
        quotas.computeIfPresent(key.user, (user, ofUser) -> {
            ofUser.remove(key.client);
            return ofUser.isEmpty() ? null : ofUser;
        });
        if (!forgetsRemovedKinds) {
            kinds |= key.kind();
        } else if (!hasAny(key.kind())) {
            kinds &= ~key.kind();
        }
    }

    /** Whether no kind of quota counts, so that Kafka alone would record nothing. */
    boolean areOff() {
        return kinds == 0;
    }

    private boolean hasAny(int kind) {
        return quotas.entrySet().stream()
                .anyMatch(ofUser -> ofUser.getValue().keySet().stream()
                        .anyMatch(client -> kind(ofUser.getKey(), client) == kind));
    }

    private static int kind(Object user, Object client) {
        return user == NONE ? CLIENTS : client == NONE ? USERS : USERS_CLIENTS;
    }

    /**
     * The tags of a client; clients with the same tags share a quota.
     *
     * @param user sanitised.
     * @param clientId not sanitised; may be empty.
     */
    Map<String, String> tags(String user, String clientId) {
        int only = kinds;
        int level = level(user, clientId);
        if (only == 0 || only == CLIENTS) {
            return TagSet.tagsOf("", clientId);
        }
        if (only == USERS) {
            return TagSet.tagsOf(user, "");
        }
        boolean isOfUser = level == 3 || level == 6;
        if (only == USERS_CLIENTS || level >= 1 && level <= 5 && !isOfUser) {
            return TagSet.tagsOf(user, clientId);
        }
        return isOfUser ? TagSet.tagsOf(user, "") : TagSet.tagsOf("", clientId);
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

    /** The quota of a client by the tags of its level only; null for none. */
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
        Object userPart = level <= 3 ? user : level <= 6 ? DEFAULT : NONE;
        Map<Object, Double> ofUser = quotas.get(userPart);
        if (ofUser == null) {
            return null;
        }
        boolean isOfUser = level == 3 || level == 6;
        boolean isOfDefault = level == 2 || level == 5 || level == 8;
        return ofUser.get(isOfUser ? NONE : isOfDefault ? DEFAULT : clientId);
    }

    /** The two parts of an entity; the user's name is sanitised. */
    private static final class Key {
        private Object user = NONE;
        private Object client = NONE;

        static Key of(ClientQuotaEntity entity) {
            Key key = new Key();
            for (ConfigEntity part : entity.configEntities()) {
                switch (part.entityType()) {
                    case USER:
                        key.user = Sanitized.of(part.name());
                        break;
                    case DEFAULT_USER:
                        key.user = DEFAULT;
                        break;
                    case CLIENT_ID:
                        key.client = part.name();
                        break;
                    case DEFAULT_CLIENT_ID:
                        key.client = DEFAULT;
                        break;
                    default:
                        throw new IllegalArgumentException("unknown: " + part.entityType());
                }
            }
            return key;
        }

        int kind() {
            return QuotaLevels.kind(user, client);
        }
    }
}
