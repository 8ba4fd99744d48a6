package throttlesidecar.refusal;

import java.util.List;
import throttlesidecar.support.Recent;
import throttlesidecar.support.Sanitized;

/**
 * Brokers, and clients that write only to excluded topics, as the authorizer sees them. A pause applies
 * to a client and not to a topic, so these clients get none. After one request to another topic the
 * client is no longer excluded.
 *
 * <p>There are few such clients; one is tiered storage's own producer. Others may have random
 * client-ids, so only the last {@link #MOST} are known. A client that is forgotten is noted again before
 * its next request is charged.
 */
public final class ExcludedWriters {
    public static final int MOST = 1000;

    /** By the user's tag and client-id, whether all requests were to excluded topics. */
    private final Recent<List<String>, Boolean> seen = new Recent<>(2 * MOST);

    private final Runnable changed;

    /** At first no client is excluded. Each change runs {@code changed}. */
    public ExcludedWriters(Runnable changed) {
        this.changed = changed;
    }

    /** Whether no client was noted yet, so that requests to other topics need no look-up. */
    boolean isEmpty() {
        return seen.isEmpty();
    }

    public void saw(String principal, String clientId, boolean onlyExcluded) {
        List<String> key = List.of(Sanitized.of(principal), clientId == null ? "" : clientId);
        Boolean before = seen.get(key);
        if (onlyExcluded ? before == null : Boolean.TRUE.equals(before)) {
            seen.remove(key);
            seen.put(key, onlyExcluded);
            changed.run();
        }
    }

    public boolean has(String user, String clientId) {
        return !seen.isEmpty() && Boolean.TRUE.equals(seen.get(List.of(user, clientId)));
    }

    /** Forgets all clients, since other topics are excluded now. */
    public void clear() {
        seen.clear();
    }
}
