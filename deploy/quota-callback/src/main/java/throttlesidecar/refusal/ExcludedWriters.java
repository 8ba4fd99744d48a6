package throttlesidecar.refusal;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import throttlesidecar.support.Sanitized;

/**
 * Clients that write to excluded topics alone, as the authorizer sees them. A pause is for a client
 * and knows no topic, so these get none; one request to another topic ends that for good.
 *
 * <p>There are few, such as tiered storage's own producer. Beyond {@link #MOST} further ones pause as
 * all others do.
 */
public final class ExcludedWriters {
    public static final int MOST = 1000;

    /** Principal and client-id to whether all was to excluded topics; guarded by this to write. */
    private final Map<String, Map<String, Boolean>> seen = new ConcurrentHashMap<>();

    /** User, by the tag, and client-ids. */
    private final Map<String, Set<String>> excluded = new ConcurrentHashMap<>();

    private final Runnable changed;
    private int count;

    /**
     * None at first.
     *
     * @param changed is run when a client begins or ceases to be excluded.
     */
    public ExcludedWriters(Runnable changed) {
        this.changed = changed;
    }

    /** Whether there are none, so that what writes to other topics needs no look-up. */
    boolean isEmpty() {
        return seen.isEmpty();
    }

    /** A request was seen. */
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
            Map<String, Boolean> ofPrincipal =
                    count >= MOST
                            ? Map.of()
                            : seen.computeIfAbsent(principal, any -> new ConcurrentHashMap<>());
            if (count >= MOST || ofPrincipal.putIfAbsent(clientId, true) != null) {
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

    /** Whether a client is excluded. */
    public boolean has(String user, String clientId) {
        Set<String> ofUser = excluded.get(user);
        return ofUser != null && ofUser.contains(clientId);
    }

    /** Forgets all, since other topics are excluded now. */
    public synchronized void clear() {
        seen.clear();
        excluded.clear();
        count = 0;
    }
}
