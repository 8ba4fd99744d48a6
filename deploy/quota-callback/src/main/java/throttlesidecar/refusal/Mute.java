package throttlesidecar.refusal;

import java.util.List;
import java.util.Map;
import throttlesidecar.throttling.TagSet;

/**
 * Mutes the connection whose request was just refused, and no other. Without a mute, a client would
 * send its 1 MB again at once.
 *
 * <p>After a refusal Kafka charges the request's time to the request quota, on the same thread, and
 * asks the callback for the tags. The callback answers with {@link #TAGS}, whose limit any request
 * exceeds. Kafka then mutes the connection for the longest time that a request quota allows: one sample
 * of quota.window.size.seconds, 1 s.
 *
 * <p>A mute belongs to one thread and one request: the next request for tags on the thread ends it.
 */
public final class Mute {
    /** No client has these tags: parentheses are encoded in a user's name. */
    public static final Map<String, String> TAGS = TagSet.tagsOf("(refused)", "");

    /** Percent of a thread: even the shortest request in the longest window takes more. */
    public static final double LIMIT = 1e-6;

    /** The principal and client-id of the thread's refused request. */
    private static final ThreadLocal<List<String>> DUE = new ThreadLocal<>();

    private Mute() {}

    /** A client's request is about to be refused on this thread. */
    static void next(String principal, String clientId) {
        DUE.set(List.of(principal, String.valueOf(clientId)));
    }

    /** The request on this thread is not refused, or not yet. */
    public static void none() {
        if (DUE.get() != null) {
            DUE.remove();
        }
    }

    /** Whether the request that is charged on this thread was refused; true once. */
    public static boolean isDue(String principal, String clientId) {
        List<String> due = DUE.get();
        none();
        return due != null && due.equals(List.of(principal, String.valueOf(clientId)));
    }
}
