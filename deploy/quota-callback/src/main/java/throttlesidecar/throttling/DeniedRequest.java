package throttlesidecar.throttling;

/**
 * Whether nothing lands of the produce request that a thread handles, since its client may write to
 * none of its topics.
 *
 * <p>Kafka charges such a request to the produce quota all the same, on the same thread. It is not to
 * use up what others may let through, and its client pauses for as long as any.
 */
public final class DeniedRequest {
    private static final ThreadLocal<Boolean> DUE = new ThreadLocal<>();

    private DeniedRequest() {}

    /** A request was authorized on this thread, which is charged next. */
    public static void next(boolean denied) {
        if (denied) {
            DUE.set(true);
        } else if (DUE.get() != null) {
            DUE.remove();
        }
    }

    /** Whether nothing of the request that is charged on this thread lands; true once. */
    public static boolean isDue() {
        if (DUE.get() == null) {
            return false;
        }
        DUE.remove();
        return true;
    }
}
