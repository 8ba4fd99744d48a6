package throttlesidecar.decision;

import java.util.Map;

/** The factors in force on this broker, and where they come from. */
public final class Factors {

    /** Where factors come from. */
    public enum Source {
        /** The sidecar's last document, which is valid. */
        SIDECAR,
        /** The broker's own eyes: a volume of its own is at or below the limit. */
        LOCAL,
        /** The last sidecar's forecast: none answers, and it expected a volume at its limit by now. */
        FORECAST,
        /** The settings, since there is no valid document. */
        FALLBACK,
        /** The callback is switched off. */
        DISABLED
    }

    /** As if there were no callback but Kafka's own. */
    public static final Factors DISABLED = new Factors(1.0, Map.of(), Source.DISABLED, 0);

    private final double global;
    private final Map<String, Double> users;
    private final Source source;
    private final long generation;
    private final Leak leak;
    private final boolean admitsNobody;
    private final boolean isSloped;
    private final Scope scope;

    public Factors(
            double global,
            Map<String, Double> users,
            Source source,
            long generation) {
        this(global, users, source, generation, Leak.WHOLE, false);
    }

    public Factors(
            double global,
            Map<String, Double> users,
            Source source,
            long generation,
            Leak leak,
            boolean admitsNobody) {
        this(global, users, source, generation, leak, admitsNobody, false, Scope.ALL);
    }

    private Factors(
            double global,
            Map<String, Double> users,
            Source source,
            long generation,
            Leak leak,
            boolean admitsNobody,
            boolean isSloped,
            Scope scope) {
        this.global = global;
        this.users = Map.copyOf(users);
        this.source = source;
        this.generation = generation;
        this.leak = leak;
        this.admitsNobody = admitsNobody;
        this.isSloped = isSloped;
        this.scope = scope;
    }

    /** The factors without a valid document; {@code factor} within [0, 1]. */
    public static Factors fallback(double factor) {
        return new Factors(factor, Map.of(), Source.FALLBACK, 0);
    }

    /** The same with the smallest leak: what pauses can do instead of a refusal. */
    public Factors urgent() {
        return new Factors(
                global, users, source, generation, Leak.SMALLEST, admitsNobody, isSloped, scope);
    }

    /** The same, on the slope between soft limit and limit. */
    public Factors sloped() {
        return new Factors(
                global, users, source, generation, leak, admitsNobody, true, scope);
    }

    /** The same for the requests of a scope alone. */
    public Factors of(Scope newScope) {
        return new Factors(
                global, users, source, generation, leak, admitsNobody, isSloped, newScope);
    }

    /** Whose requests the factor for all is for. */
    public Scope scope() {
        return scope;
    }

    /** Whether the factor for all multiplies the smaller of a quota and the rate before. */
    public boolean isSloped() {
        return isSloped;
    }

    /** All produce quotas are multiplied by it; within [0, 1]. */
    public double global() {
        return global;
    }

    /** The same for single users, by the principal's name; the stricter of the two applies. */
    public Map<String, Double> users() {
        return users;
    }

    public Source source() {
        return source;
    }

    /** The document's; 0 without one. */
    public long generation() {
        return generation;
    }

    /** What this broker may let through at a factor of 0. */
    public Leak leak() {
        return leak;
    }

    /** Whether a volume is below the stop line, so that nothing is admitted; with a factor of 0. */
    public boolean admitsNobody() {
        return admitsNobody;
    }
}
