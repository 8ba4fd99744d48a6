package throttlesidecar.throttling;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import throttlesidecar.support.Recent;

/**
 * Knows which requests write to topics of an owner past its storage budget. As in {@link
 * ScopedRequests}, a request is noted when it is authorized, and found by its principal object when it is
 * charged. Where requests share one object, the owner that was noted last counts until no owner is
 * throttled.
 */
final class BudgetRequests {
    private final Recent<ScopedRequests.Key, String> noted = new Recent<>(ScopedRequests.MOST);

    /** Notes a request that writes to an owner's topics. */
    void note(KafkaPrincipal principal, String clientId, String owner) {
        ScopedRequests.Key key = new ScopedRequests.Key(principal, clientId);
        if (!owner.equals(noted.get(key))) {
            noted.remove(key);
            noted.put(key, owner);
        }
    }

    /** The owner that a request was noted with; null for none. */
    String owner(KafkaPrincipal principal, String clientId) {
        return noted.get(new ScopedRequests.Key(principal, clientId));
    }

    void clear() {
        noted.clear();
    }
}
