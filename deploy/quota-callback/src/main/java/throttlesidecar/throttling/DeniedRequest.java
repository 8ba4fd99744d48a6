package throttlesidecar.throttling;

/**
 * Whether the produce request that a thread handles is denied as a whole, because its client may write
 * to none of its topics.
 *
 * <p>No bytes of such a request land, but Kafka still charges it to the produce quota, on the same
 * thread. It must not use up the leak budget of other clients, and its client pauses as long as others.
 */
public final class DeniedRequest {
    private static final ThreadLocal<Boolean> DUE = new ThreadLocal<>();

    private DeniedRequest() {}

    /** A request was authorized on this thread, and is charged next. */
    public static void next(boolean denied) {
        if (denied) {
            DUE.set(true);
        } else if (DUE.get() != null) {
            DUE.remove();
        }
    }

    /** Whether the request that is charged on this thread was denied; true only once. */
    public static boolean isDue() {
        if (DUE.get() == null) {
            return false;
        }
        DUE.remove();
        return true;
    }
}
