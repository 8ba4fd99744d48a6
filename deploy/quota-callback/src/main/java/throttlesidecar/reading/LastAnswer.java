package throttlesidecar.reading;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import throttlesidecar.decision.Budgets;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;

/**
 * The last answer of one sidecar, and how long it counts. A document is valid while now &lt;= answer +
 * validity, and each answer renews it, even a 304.
 */
final class LastAnswer {
    private static final int VIOLATION = 2;

    /** A sidecar that has not answered for this time is silent, even if its last request did not fail. */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** The last document; null before the first answer. */
    Document document;

    /** Until when the document is valid, on the monotonic clock. */
    long untilNanos;

    /** Whether the sidecar's last request had a valid answer. */
    boolean answers;

    private double factorNow = Double.NaN;
    private Leak leak = Leak.WHOLE;
    private long observedNanos;
    private long answeredNanos;
    private Long limitAtNanos;

    /** The document's factor; between soft limit and limit, the newest factor. */
    double factor() {
        return isSloped() && !Double.isNaN(factorNow) ? factorNow : document.factor;
    }

    boolean isSloped() {
        return document.source == Document.Source.SLOPE;
    }

    /** Whether the factor comes from volumes that the sidecar observed. */
    boolean sees() {
        return document.source == Document.Source.OBSERVATION || isSloped();
    }

    boolean isValid(long nowNanos) {
        return document != null && nowNanos - untilNanos <= 0;
    }

    /** When the answer changes by time alone: the document expires, or its forecast is reached. */
    long changesNanos(long nowNanos) {
        long next = untilNanos;
        if (limitAtNanos != null) {
            for (long moment : List.of(limitAtNanos, answeredNanos + SILENT_NANOS)) {
                next = moment - nowNanos >= 0 && moment - next < 0 ? moment : next;
            }
        }
        // Each applies until the end of its moment.
        return next + 1;
    }

    /** The last request had no valid answer; the document stays valid. */
    void failed() {
        answers = false;
    }

    /** Takes an answer that is not a failure. */
    void take(Answer answer) {
        answers = true;
        document = answer.document == null ? document : answer.document;
        factorNow = answer.factor;
        leak = answer.leak;
        answeredNanos = answer.atNanos;
        untilNanos = answeredNanos + TimeUnit.MILLISECONDS.toNanos(answer.validForMs);
        observedNanos = answeredNanos - TimeUnit.MILLISECONDS.toNanos(answer.observedMsAgo);
        limitAtNanos = answer.limitInMs < 0
                ? null
                : (Long) (answeredNanos + TimeUnit.MILLISECONDS.toNanos(answer.limitInMs));
    }

    /** The document, with the age at which as much of its validity is left. */
    DocumentFile.Found toKeep(long nowNanos) {
        long leftMs = TimeUnit.NANOSECONDS.toMillis(untilNanos - nowNanos);
        return new DocumentFile.Found(document, document.validForMs - leftMs);
    }

    /** Whether the sidecar expected a volume at its limit before a moment. */
    boolean expectsLimitBefore(long nanos) {
        return limitAtNanos != null && limitAtNanos - nanos < 0;
    }

    /** The answers of all sidecars, the broker's own first. */
    static List<LastAnswer> all(LastAnswer own, List<LastAnswer> others) {
        List<LastAnswer> all = new ArrayList<>(others);
        all.add(0, own);
        return all;
    }

    /**
     * The answers that count: those of sidecars that answer and have an observation, or those of all
     * sidecars with a valid document if there are none. An operator's override at the broker's own
     * sidecar counts alone. An answer without an observation (a fallback or another sidecar's override)
     * is the last resort: it does not replace the last observation of a dead sidecar.
     */
    static List<LastAnswer> counting(LastAnswer own, List<LastAnswer> others, long nowNanos) {
        if (own.isValid(nowNanos) && own.document.source == Document.Source.OPERATOR) {
            return List.of(own);
        }
        List<LastAnswer> all = all(own, others);
        all.removeIf(last -> !last.isValid(nowNanos));
        boolean anySees = all.stream().anyMatch(LastAnswer::sees);
        if (all.stream().anyMatch(last -> last.answers && last.sees() == anySees)) {
            all.removeIf(last -> !last.answers);
        }
        return all;
    }

    /**
     * The strictest answer with a violation, or else the answer with the youngest observation; null for
     * none.
     *
     * <p>Example: the broker's own sidecar was killed a second ago, and observed no violation 3 s ago.
     * Another sidecar observes a violation now, so the other's answer counts. If both are alive, and
     * the other's observation is 60 s old and without a violation, the own sidecar's answer counts.
     */
    static LastAnswer strictest(List<LastAnswer> counting) {
        return counting.stream()
                .reduce((best, last) -> last.countsMoreThan(best) ? last : best)
                .orElse(null);
    }

    /**
     * The leak of this broker: the own sidecar's if that has a violation, since only that sidecar knows
     * which volumes the broker fills. Otherwise the smallest leak of all answers.
     */
    static Leak leak(LastAnswer own, List<LastAnswer> counting) {
        if (counting.contains(own) && own.answers && own.rank() == VIOLATION) {
            return own.leak;
        }
        Leak smallest = Leak.WHOLE;
        for (LastAnswer last : counting) {
            smallest = last.leak.share < smallest.share ? last.leak : smallest;
        }
        return smallest;
    }

    /** The scope of the strictest answer, together with the scopes of all answers with a violation. */
    static Scope scope(LastAnswer strictest, List<LastAnswer> counting) {
        Scope scope = strictest.document.scope;
        for (LastAnswer last : counting) {
            scope = last.rank() == VIOLATION ? scope.and(last.document.scope) : scope;
        }
        return scope;
    }

    /** The factors of single users: of each user, the smallest of all answers. */
    static Map<String, Double> users(List<LastAnswer> counting) {
        Map<String, Double> users = new HashMap<>();
        for (LastAnswer last : counting) {
            last.document.users.forEach((user, factor) -> users.merge(user, factor, Math::min));
        }
        return users;
    }

    /** The owners past their storage budgets, by any answer. */
    static Budgets budgets(List<LastAnswer> counting) {
        Budgets budgets = Budgets.NONE;
        for (LastAnswer last : counting) {
            budgets = budgets.and(last.document.budgets);
        }
        return budgets;
    }

    /**
     * Whether no sidecar answers any more, and the sidecar that observed last expected a volume to be
     * at its limit by now. A broker reads only its own volumes: without this rule it would continue to
     * fill the replicas of its partitions on other brokers.
     */
    static boolean forecasts(LastAnswer own, List<LastAnswer> others, long nowNanos) {
        LastAnswer youngest = null;
        for (LastAnswer last : all(own, others)) {
            if (!last.isValid(nowNanos) || !last.sees()) {
                continue;
            }
            if (last.answers && nowNanos - last.answeredNanos <= SILENT_NANOS) {
                return false;
            }
            boolean isYounger = youngest == null || last.observedNanos - youngest.observedNanos > 0;
            youngest = isYounger ? last : youngest;
        }
        return youngest != null && youngest.expectsLimitBefore(nowNanos);
    }

    private boolean countsMoreThan(LastAnswer other) {
        if (rank() != other.rank()) {
            return rank() > other.rank();
        }
        if (rank() == VIOLATION && factor() != other.factor()) {
            return factor() < other.factor();
        }
        if (document.stops != other.document.stops) {
            return document.stops;
        }
        return observedNanos - other.observedNanos > 0;
    }

    private int rank() {
        return !sees() ? 0 : factor() < 1.0 || document.stops ? VIOLATION : 1;
    }
}
