package throttlesidecar.decision;

import java.util.Map;

/** The factors that apply on this broker, and where they come from. */
public final class Factors {

    public enum Source {
        /** The sidecar's last document, which is valid. */
        SIDECAR,
        /** The broker itself: one of its own volumes is at or below the limit. */
        LOCAL,
        /** The last forecast: no sidecar answers, and a volume was expected to be at its limit by now. */
        FORECAST,
        /** The broker's settings, since there is no valid document. */
        FALLBACK,
        /** The callback is switched off. */
        DISABLED
    }

    /** As if there were no callback but Kafka's own. */
    public static final Factors DISABLED = new Factors(1.0, Map.of(), Source.DISABLED, 0);

    /** The factor for all, by which every produce quota is multiplied, from 0 to 1. */
    public final double global;

    /** The factors of single users, by the principal's name; the stricter factor applies. */
    public final Map<String, Double> users;

    public final Source source;

    /** The document's generation; 0 without a document. */
    public final long generation;

    /** What this broker may let through at a factor of 0. */
    public final Leak leak;

    /** Whether a volume is below the stop line, so that nothing is admitted; with a factor of 0. */
    public final boolean admitsNobody;

    /** Between soft limit and limit: the factor multiplies the smaller of a quota and the rate before. */
    public final boolean isSloped;

    /** The requests that the factor for all applies to. */
    public final Scope scope;

    /** The owners past their storage budgets; the stricter factor applies. */
    public final Budgets budgets;

    public Factors(double global, Map<String, Double> users, Source source, long generation) {
        this(global, users, source, generation, Leak.WHOLE, false, false, Scope.ALL);
    }

    public Factors(
            double global, Map<String, Double> users, Source source, long generation, Leak leak,
            boolean admitsNobody, boolean isSloped, Scope scope) {
        this(
                global, users, source, generation, leak, admitsNobody, isSloped, scope, Budgets.NONE);
    }

    private Factors(
            double global, Map<String, Double> users, Source source, long generation, Leak leak,
            boolean admitsNobody, boolean isSloped, Scope scope, Budgets budgets) {
        this.global = global;
        this.users = Map.copyOf(users);
        this.source = source;
        this.generation = generation;
        this.leak = leak;
        this.admitsNobody = admitsNobody;
        this.isSloped = isSloped;
        this.scope = scope;
        this.budgets = budgets;
    }

    /** The factors without a valid document, from the broker's setting. */
    public static Factors fallback(double factor) {
        return new Factors(factor, Map.of(), Source.FALLBACK, 0);
    }

    /** The same with the smallest leak, for pauses that replace refusals. */
    public Factors urgent() {
        return new Factors(
                global, users, source, generation, Leak.SMALLEST, admitsNobody, isSloped, scope,
                budgets);
    }

    /** The same for the requests of a scope only. */
    public Factors of(Scope newScope) {
        return new Factors(
                global, users, source, generation, leak, admitsNobody, isSloped, newScope, budgets);
    }

    /** The same with these owners past their storage budgets. */
    public Factors with(Budgets newBudgets) {
        return new Factors(
                global, users, source, generation, leak, admitsNobody, isSloped, scope, newBudgets);
    }

    /** The same with a factor of 0 for all requests of a scope, whatever the sidecar decided. */
    public Factors throttled(Source by, boolean stops, Scope newScope) {
        return new Factors(
                0.0, users, by, generation, leak, stops || admitsNobody, false, newScope, budgets);
    }
}
