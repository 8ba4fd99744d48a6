package throttlesidecar.refusal;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import throttlesidecar.support.Sanitized;

/**
 * Brokers, and clients that write only to excluded topics, as the authorizer sees them. A pause applies to a client
 * and not to a topic, so these clients get none. After one request to another topic the client is no
 * longer excluded, until the settings change.
 *
 * <p>There are few such clients; one is tiered storage's own producer. Beyond {@link #MOST}, further
 * clients pause like all others.
 */
public final class ExcludedWriters {
    public static final int MOST = 1000;

    /** By principal and client-id, whether all requests were to excluded topics; this guards writes. */
    private final Map<String, Map<String, Boolean>> seen = new ConcurrentHashMap<>();

    /** The excluded client-ids of each user, by the user's tag. */
    private final Map<String, Set<String>> excluded = new ConcurrentHashMap<>();

    private final Runnable changed;
    private int count;

    /** At first no client is excluded. Each change runs {@code changed}. */
    public ExcludedWriters(Runnable changed) {
        this.changed = changed;
    }

    /** Whether no client was noted yet, so that requests to other topics need no look-up. */
    boolean isEmpty() {
        return seen.isEmpty();
    }

    public void saw(String principal, String clientId, boolean onlyExcluded) {
        String id = clientId == null ? "" : clientId;
        Map<String, Boolean> ofPrincipal = seen.get(principal);
        Boolean before = ofPrincipal == null ? null : ofPrincipal.get(id);
        if (onlyExcluded ? before == null : Boolean.TRUE.equals(before)) {
            note(principal, id, onlyExcluded);
        }
    }

    private synchronized void note(String principal, String clientId, boolean onlyExcluded) {
        String user = Sanitized.of(principal);
        if (onlyExcluded) {
            if (count >= MOST
                    || seen.computeIfAbsent(principal, any -> new ConcurrentHashMap<>())
                            .putIfAbsent(clientId, true) != null) {
                return;
            }
            count++;
            excluded.computeIfAbsent(user, any -> ConcurrentHashMap.newKeySet()).add(clientId);
        } else {
            Map<String, Boolean> ofPrincipal = seen.get(principal);
            if (ofPrincipal == null || !Boolean.TRUE.equals(ofPrincipal.put(clientId, false))) {
                return;
            }
            excluded.get(user).remove(clientId);
        }
        changed.run();
    }

    public boolean has(String user, String clientId) {
        Set<String> ofUser = excluded.get(user);
        return ofUser != null && ofUser.contains(clientId);
    }

    /** Forgets all clients, since other topics are excluded now. */
    public synchronized void clear() {
        seen.clear();
        excluded.clear();
        count = 0;
    }
}
