package throttlesidecar.refusal;

import java.util.Map;
import throttlesidecar.throttling.TagSet;

/**
 * Mutes the connection whose request was just refused, and no other.
 *
 * <p>After a refusal Kafka charges the request's time to the request quota, on the same thread, and
 * requests the tags for it from the callback. With {@link #TAGS}, whose limit is exceeded by any
 * request, it mutes that connection for the longest time that a request quota can: one sample of
 * quota.window.size.seconds, 1 s. Else a client would send its 1 MB again at once.
 *
 * <p>What is due is of the thread and for one request: whatever tags it requests next end it.
 */
public final class Mute {
    /** No client has them: parentheses are encoded in the name of a user. */
    public static final Map<String, String> TAGS = TagSet.tagsOf("(refused)", "");

    /** Percent of a thread: what the shortest request takes in the longest window is more. */
    public static final double LIMIT = 1e-6;

    private static final ThreadLocal<Mute> DUE = new ThreadLocal<>();

    private final String principal;
    private final String clientId;

    private Mute(String principal, String clientId) {
        this.principal = principal;
        this.clientId = clientId;
    }

    /** A request of a client is about to be refused on this thread. */
    static void next(String principal, String clientId) {
        DUE.set(new Mute(principal, clientId));
    }

    /** Nothing was refused on this thread after all. */
    public static void none() {
        if (DUE.get() != null) {
            DUE.remove();
        }
    }

    /** Whether the request that is charged on this thread was refused; true once. */
    public static boolean isDue(String principal, String clientId) {
        Mute due = DUE.get();
        if (due == null) {
            return false;
        }
        DUE.remove();
        return due.principal.equals(principal) && String.valueOf(due.clientId).equals(
                String.valueOf(clientId));
    }
}
