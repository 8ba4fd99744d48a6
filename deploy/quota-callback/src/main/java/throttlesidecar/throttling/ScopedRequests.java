package throttlesidecar.throttling;

import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import throttlesidecar.decision.Scope;
import throttlesidecar.support.Recent;

/**
 * Knows which requests write to a topic in scope. Requests are noted when they are authorized, and
 * looked up when they are charged. With acks=all, Kafka charges a request later and on another thread.
 *
 * <p>The link between the two is the request's own principal object: with SASL and mTLS, Kafka builds
 * one for each request. On listeners without logins all requests share the object ANONYMOUS, and a
 * custom principal builder may keep one object for each user. There, requests can't be told from each
 * other: once one was in scope, all of the same object and client-id are, until the scope changes.
 *
 * <p>A request that was authorized before the scope applied, and is charged afterwards, is out of
 * scope: it has landed, and a pause would be useless if its client writes elsewhere. After {@link
 * #UNDER_WAY_MS} there are no such requests, and a request that was not noted is in scope.
 */
final class ScopedRequests {
    /** How long a request waits for its replicas by default. */
    static final long UNDER_WAY_MS = 30_000;

    /** The most requests in progress that are noted; beyond it, the oldest count as in scope. */
    static final int MOST = 65_536;

    /** The most characters of a client-id that are noted. */
    private static final int LONGEST = 512;

    /** Stands for the scope of a request that is in none. */
    private static final Scope OUT = Scope.of(Set.of());

    /** The scope that each request was in, or OUT. */
    private final Recent<Key, Scope> noted = new Recent<>(MOST);
    private volatile long sinceNanos;

    static final class Key {
        private final KafkaPrincipal principal;
        private final String clientId;

        Key(KafkaPrincipal principal, String clientId) {
            this.principal = principal;
            String id = clientId == null ? "" : clientId;
            // A client-id may have 32 kB, and what comes after its beginning matters to nobody.
            this.clientId = id.length() <= LONGEST ? id : id.substring(0, LONGEST);
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

    /** A scope begins to apply, and requests are noted from now on. */
    void begin(long nanos) {
        noted.clear();
        sinceNanos = nanos;
    }

    /** No scope applies any more. */
    void end() {
        noted.clear();
    }

    void note(KafkaPrincipal principal, String clientId, Scope scope, boolean isInScope) {
        Key key = new Key(principal, clientId);
        Scope last = noted.get(key);
        Scope next = isInScope ? scope : OUT;
        if (last != scope && last != next) {
            noted.remove(key);
            noted.put(key, next);
        }
    }

    /** Whether a request that is charged writes to a topic in scope. */
    boolean isInScope(KafkaPrincipal principal, String clientId, long nanos) {
        Scope known = noted.get(new Key(principal, clientId));
        return known == null
                ? nanos - sinceNanos > TimeUnit.MILLISECONDS.toNanos(UNDER_WAY_MS)
                : known != OUT;
    }
}
