package throttlesidecar.observability;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;

/**
 * The faults that may keep the callback from throttling clients of this broker.
 *
 * <p>The callback depends on the order in which Kafka calls it and on the names of Kafka's metrics. A
 * version of Kafka that changed them would silently throttle no client. Request threads only note a
 * fault; {@link #report} logs each kind once.
 */
public final class Faults {

    /** The kinds of faults, the gravest first. */
    public enum Kind {
        /** The sidecar sends a limit that this jar does not know, so its answers can't be used. */
        OUTDATED("Update the jar"),
        /** At the start, Kafka's own sensor did not result in a pause. */
        SELF_TEST("Report it, with Kafka's version"),
        /** The authorizer does not find Kafka's internal classes, so nothing is refused. */
        NOT_REFUSED("Update the jar"),
        /** In a throttle, Kafka records requests without asking for their quota. */
        NOT_ASKED("Report it, with Kafka's version"),
        /** A log dir's disk does not answer, so its last reading counts. */
        DISK_HANGS("Check the disk"),
        /** An error was caught, and the clients' own quotas apply. */
        ERROR("Report it, with Kafka's version");

        /** What the operator should do. */
        public final String advice;

        Kind(String advice) {
            this.advice = advice;
        }
    }

    private final Map<Kind, String> found = new ConcurrentHashMap<>();
    private final Map<Kind, String> reported = new EnumMap<>(Kind.class);

    /** Notes a fault and returns whether its kind is new. Of one kind, the first detail is kept. */
    public boolean found(Kind kind, String detail) {
        return found.putIfAbsent(kind, detail) == null;
    }

    public void gone(Kind kind) {
        found.remove(kind);
    }

    /** The gravest fault, in lower case with hyphens, such as "not-asked"; or "none". */
    public String worst() {
        for (Kind kind : Kind.values()) {
            if (found.containsKey(kind)) {
                return kind.name().toLowerCase(Locale.ROOT).replace('_', '-');
            }
        }
        return "none";
    }

    /** Passes on each fault that is new since the last call. */
    public synchronized void report(BiConsumer<Kind, String> reporter) {
        reported.keySet().retainAll(found.keySet());
        found.forEach((kind, detail) -> {
            if (reported.putIfAbsent(kind, detail) == null) {
                reporter.accept(kind, detail);
            }
        });
    }
}
