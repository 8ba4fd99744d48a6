package throttlesidecar.observability;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;

/**
 * What keeps the callback from throttling in this broker, as its guards found it.
 *
 * <p>The callback depends on the order in which Kafka calls it and on the names of Kafka's metrics:
 * a version that changed them would throttle nobody, and no log line would say so. Request threads only note what
 * they found; {@link #report} logs each kind once.
 */
public final class Faults {

    /** What can be wrong. */
    public enum Kind {
        /** The sidecar sends a limit that this jar does not know: its answers can't be used. */
        OUTDATED("Update the jar"),
        /** At the start no pause came out of Kafka's own sensor. */
        SELF_TEST("Report it, with Kafka's version"),
        /** In a throttle, Kafka records requests without a request for their quota. */
        NOT_ASKED("Report it, with Kafka's version"),
        /** An error, which was kept from clients and Kafka: their own quotas apply. */
        ERROR("Report it, with Kafka's version");

        /** What to do about it. */
        public final String advice;

        Kind(String advice) {
            this.advice = advice;
        }
    }

    private final Map<Kind, String> found = new ConcurrentHashMap<>();
    private final Map<Kind, String> reported = new EnumMap<>(Kind.class);

    /** Notes a fault; of a kind that is there already, the first counts. True if it is new. */
    public boolean found(Kind kind, String detail) {
        return found.putIfAbsent(kind, detail) == null;
    }

    /** A fault is over. */
    public void gone(Kind kind) {
        found.remove(kind);
    }

    /** The gravest that is there, in lower case with hyphens, such as "not-asked"; or "none". */
    public String worst() {
        for (Kind kind : Kind.values()) {
            if (found.containsKey(kind)) {
                return kind.name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
            }
        }
        return "none";
    }

    /** Passes on each fault that is new since the last call; one thread at a time. */
    public void report(BiConsumer<Kind, String> reporter) {
        reported.keySet().retainAll(found.keySet());
        found.forEach((kind, detail) -> {
            if (reported.putIfAbsent(kind, detail) == null) {
                reporter.accept(kind, detail);
            }
        });
    }
}
