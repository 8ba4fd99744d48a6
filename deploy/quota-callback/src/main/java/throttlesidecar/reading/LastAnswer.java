package throttlesidecar.reading;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;

/**
 * What one sidecar said last, and for how long it counts: a document is valid while now &lt;= answer +
 * validity, and each answer, a 304 too, renews it.
 */
final class LastAnswer {
    private static final int VIOLATION = 2;

    /** A sidecar that has not answered for so long is silent, whether its last request failed or not. */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(5);

    private Document document;
    private double factorNow = Double.NaN;
    private Leak leak = Leak.WHOLE;
    private long untilNanos;
    private long observedNanos;
    private long answeredNanos;
    private Long limitAtNanos;
    private boolean answers;

    /** Whether its last request had a valid answer. */
    boolean answers() {
        return answers;
    }

    /** The last document; null before the first. */
    Document document() {
        return document;
    }

    /** The document's factor, or where that is on its slope by now. */
    double factor() {
        boolean moves = isSloped() && !Double.isNaN(factorNow);
        return moves ? factorNow : document.factor();
    }

    /** Whether the factor is on its slope. */
    boolean isSloped() {
        return document.source() == Document.Source.SLOPE;
    }

    /** Until when the document is valid, on the monotonic clock. */
    long untilNanos() {
        return untilNanos;
    }

    /** When its word is another one by time alone: a valid document expires, or forecasts. */
    long changesNanos(long nowNanos) {
        long next = untilNanos;
        if (limitAtNanos != null) {
            for (long moment : List.of(limitAtNanos, answeredNanos + SILENT_NANOS)) {
                next = moment - nowNanos >= 0 && moment - next < 0 ? moment : next;
            }
        }
        // Each counts to the end of that moment.
        return next + 1;
    }

    boolean isValid(long nowNanos) {
        return document != null && nowNanos - untilNanos <= 0;
    }

    /** Its last request had no valid answer; the document stays valid. */
    void fails() {
        answers = false;
    }

    /** Takes an answer that is no failure. */
    void hear(Answer answer) {
        answers = true;
        if (answer.document() != null) {
            document = answer.document();
        }
        factorNow = answer.factor();
        leak = answer.leak();
        untilNanos = answer.atNanos() + TimeUnit.MILLISECONDS.toNanos(answer.validForMs());
        observedNanos = answer.atNanos() - TimeUnit.MILLISECONDS.toNanos(answer.observedMsAgo());
        answeredNanos = answer.atNanos();
        long inMs = answer.limitInMs();
        limitAtNanos = inMs < 0 ? null : answeredNanos + TimeUnit.MILLISECONDS.toNanos(inMs);
    }

    /** Takes a document that was kept on disk; it may have ended. */
    void remember(Document kept, long ageMs, long nowNanos) {
        document = kept;
        long leftMs = kept.validForMs() - ageMs;
        untilNanos = nowNanos + TimeUnit.MILLISECONDS.toNanos(leftMs);
        observedNanos = nowNanos - TimeUnit.MILLISECONDS.toNanos(ageMs);
    }

    /** Whether it expects a volume at its limit before a moment. */
    boolean expectsLimitBefore(long nanos) {
        return limitAtNanos != null && limitAtNanos - nanos < 0;
    }

    /** The own one's and those of the others. */
    static List<LastAnswer> all(LastAnswer own, List<LastAnswer> others) {
        List<LastAnswer> all = new ArrayList<>(others);
        all.add(0, own);
        return all;
    }

    /** Whether it is by volumes that were seen. */
    boolean sees() {
        return document.source() == Document.Source.OBSERVATION || isSloped();
    }

    private boolean isOperators() {
        return document.source() == Document.Source.OPERATOR;
    }

    /**
     * Whose word counts: that of the sidecars that answer and see, or of all with a valid document when
     * none does; of the broker's own alone by an operator's override. A word by no observation (a
     * fallback, another sidecar's override) is the last resort: it ends no dead sidecar's word.
     */
    static List<LastAnswer> counting(LastAnswer own, List<LastAnswer> others, long nowNanos) {
        if (own.isValid(nowNanos) && own.isOperators()) {
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
     * The strictest that sees a violation, or else the one with the youngest observation.
     *
     * <p>Example: the own sidecar was killed a second ago and saw no violation 3 s ago, another sees one
     * now: the other's. With both alive, and the other's observation 60 s old and without a violation:
     * the own.
     *
     * @param counting whose word counts.
     * @return null when there is none.
     */
    static LastAnswer strictest(List<LastAnswer> counting) {
        LastAnswer best = null;
        for (LastAnswer last : counting) {
            best = best == null || last.countsMoreThan(best) ? last : best;
        }
        return best;
    }

    /**
     * What this broker may let through: the own sidecar's word where that sees a violation, since it
     * alone knows whom the broker feeds; else the smallest of the others', whoever observed last.
     */
    static Leak leak(LastAnswer own, List<LastAnswer> counting) {
        if (counting.contains(own) && own.answers && own.rank() == VIOLATION) {
            return own.leak;
        }
        Leak smallest = Leak.WHOLE;
        for (LastAnswer last : counting) {
            smallest = last.leak.share() < smallest.share() ? last.leak : smallest;
        }
        return smallest;
    }

    /** Whose requests a factor is for, by all whose word counts and who see a violation as it does. */
    static Scope scope(LastAnswer strictest, List<LastAnswer> counting) {
        Scope scope = strictest.document.scope();
        for (LastAnswer last : counting) {
            scope = last.rank() == VIOLATION ? scope.and(last.document.scope()) : scope;
        }
        return scope;
    }

    /**
     * Whether no sidecar answers any more, and the one that observed last expected a volume at its limit
     * by now. A broker sees its own volumes alone: without this it would go on filling the replicas that
     * others have of its partitions.
     */
    static boolean forecasts(LastAnswer own, List<LastAnswer> others, long nowNanos) {
        List<LastAnswer> all = all(own, others);
        all.removeIf(last -> !last.isValid(nowNanos) || !last.sees());
        LastAnswer youngest = null;
        for (LastAnswer last : all) {
            if (last.answers && nowNanos - last.answeredNanos <= SILENT_NANOS) {
                return false;
            }
            youngest =
                    youngest == null || last.observedNanos - youngest.observedNanos > 0
                            ? last
                            : youngest;
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
        if (document.stops() != other.document.stops()) {
            return document.stops();
        }
        return observedNanos - other.observedNanos > 0;
    }

    private int rank() {
        return !sees() ? 0 : factor() < 1.0 || document.stops() ? VIOLATION : 1;
    }
}
