package throttlesidecar.throttling;

import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import throttlesidecar.support.Recent;

/**
 * Which requests write to a topic in scope: noted when they are authorized, and asked for when they are
 * charged, which with acks=all is later and on another thread.
 *
 * <p>What the two have in common is the request's own principal object: for SASL and mTLS Kafka builds
 * one for each request. On listeners without logins one object, ANONYMOUS, is everybody's, and a principal
 * builder may keep one for each user: there a client, by that object and its client-id, counts as what
 * it last wrote to.
 *
 * <p>A request that was authorized before anything was noted, and is charged now, is out of scope: it has
 * landed, and a pause would be for nothing if its client writes elsewhere. After
 * {@link #UNDER_WAY_MS} there is none, and what is not noted is in scope.
 */
final class ScopedRequests {
    /** As long as a request waits for its replicas, by default. */
    static final long UNDER_WAY_MS = 30_000;

    /** Of more requests under way the oldest are taken as in scope. */
    static final int MOST = 65_536;

    private final Recent<Key, Boolean> noted = new Recent<>(MOST);
    private volatile long sinceNanos;

    /** A principal object and a client-id. */
    private static final class Key {
        private final KafkaPrincipal principal;
        private final String clientId;

        Key(KafkaPrincipal principal, String clientId) {
            this.principal = principal;
            this.clientId = clientId == null ? "" : clientId;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key
                    && principal == ((Key) other).principal
                    && clientId.equals(((Key) other).clientId);
        }

        @Override
        public int hashCode() {
            return 31 * System.identityHashCode(principal) + clientId.hashCode();
        }
    }

    /** From now on requests are noted. */
    void begin(long nanos) {
        noted.clear();
        sinceNanos = nanos;
    }

    /** No request is noted any more. */
    void end() {
        noted.clear();
    }

    /** A request was authorized. */
    void note(KafkaPrincipal principal, String clientId, boolean isInScope) {
        Key key = new Key(principal, clientId);
        Boolean last = noted.get(key);
        if (last == null || last != isInScope) {
            noted.remove(key);
            noted.put(key, isInScope);
        }
    }

    /** Whether the request that is charged writes to a topic in scope. */
    boolean isInScope(KafkaPrincipal principal, String clientId, long nanos) {
        Boolean known = noted.get(new Key(principal, clientId));
        return known == null
                ? nanos - sinceNanos > TimeUnit.MILLISECONDS.toNanos(UNDER_WAY_MS)
                : known;
    }
}
