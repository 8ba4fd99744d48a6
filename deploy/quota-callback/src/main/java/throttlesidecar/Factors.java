package throttlesidecar;

import java.util.Map;

/** The factors in force on this broker, and where they come from. */
final class Factors {

    /** Where factors come from. */
    enum Source {
        /** The sidecar's last document, which is valid. */
        SIDECAR,
        /** The broker's own eyes: a volume of its own is at or below the limit. */
        LOCAL,
        /** The settings, since there is no valid document. */
        FALLBACK,
        /** The callback is switched off. */
        DISABLED
    }

    /** As if there were no callback but Kafka's own. */
    static final Factors DISABLED = new Factors(1.0, Map.of(), Source.DISABLED, 0, Double.NaN);

    private final double global;
    private final Map<String, Double> users;
    private final Source source;
    private final long generation;
    private final double secondsToFull;
    private final boolean admitsNobody;

    Factors(
            double global,
            Map<String, Double> users,
            Source source,
            long generation,
            double secondsToFull) {
        this(global, users, source, generation, secondsToFull, false);
    }

    Factors(
            double global,
            Map<String, Double> users,
            Source source,
            long generation,
            double secondsToFull,
            boolean admitsNobody) {
        this.global = global;
        this.users = Map.copyOf(users);
        this.source = source;
        this.generation = generation;
        this.secondsToFull = secondsToFull;
        this.admitsNobody = admitsNobody;
    }

    /** The factors without a valid document; {@code factor} within [0, 1]. */
    static Factors fallback(double factor) {
        return new Factors(factor, Map.of(), Source.FALLBACK, 0, Double.NaN);
    }

    /** The same as if a volume were full already: what pauses can do instead of a refusal. */
    Factors urgent() {
        return new Factors(global, users, source, generation, 0.0, admitsNobody);
    }

    /** All produce quotas are multiplied by it; within [0, 1]. */
    double global() {
        return global;
    }

    /** The same for single users, by the principal's name; the stricter of the two applies. */
    Map<String, Double> users() {
        return users;
    }

    Source source() {
        return source;
    }

    /** The document's; 0 without one. */
    long generation() {
        return generation;
    }

    /** When the first volume would be full at its present fill rate; NaN: unknown, or none fills. */
    double secondsToFull() {
        return secondsToFull;
    }

    /** Whether a volume is below the second line, so that nothing is admitted; with a factor of 0. */
    boolean admitsNobody() {
        return admitsNobody;
    }
}
