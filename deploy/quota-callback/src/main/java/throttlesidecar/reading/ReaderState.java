package throttlesidecar.reading;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.Journal;
import throttlesidecar.settings.Settings;
import throttlesidecar.volumes.OwnVolumes;
import throttlesidecar.volumes.Volume;
import throttlesidecar.volumes.VolumeLine;

/**
 * Decides which factors apply and which request is due: the half of a {@link SidecarReader} without a
 * thread, a clock or a socket. One thread at a time calls it. All times are on the monotonic clock.
 *
 * <p>A document is valid while now &lt;= answer + validity, and each answer renews it, even a 304.
 * After that, and before the first answer, the fallback applies. A failed request changes nothing.
 *
 * <p>The sidecar may wait {@link #WAIT_S} for a change before it answers, or {@link #WAIT_THROTTLED_S}
 * while a factor is below 1, since each answer tells the time until a volume is full. After a failure
 * it is asked not to wait, so that a restarted sidecar counts at once.
 *
 * <p>Example: an answer at second 0 is valid for 5 min, and no answer follows. A request is sent every
 * 500 ms. After 300 s the fallback applies. The sidecar starts at 400 s, and its factor applies by
 * 400.5 s.
 */
final class ReaderState {
    static final int WAIT_S = 10;
    static final int WAIT_THROTTLED_S = 1;

    /** If a volume is this close to its limit, the sidecar is asked every second. */
    private static final long CLOSE_MS = 30_000;

    /** The time from one request to the next after a failure. */
    static final long RETRY_MS = 500;

    /** The same after an answer, so that a sidecar that does not wait is not polled without a pause. */
    private static final long BACKOFF_MS = 100;

    /** The same after a document without an entity tag, for whose change no sidecar waits. */
    private static final long POLL_MS = 1_000;

    /**
     * How long after its wait a request is lost: a client fails it much sooner, unless an error ended
     * its thread. The state is looked at as often.
     */
    private static final long LOST_MS = 5_000;

    /** How often factors are applied during a release. */
    private static final long TICK_MS = 500;

    private final Faults faults;
    private final Journal journal;
    private final LastAnswer own = new LastAnswer();
    private final OwnVolumes volumes = new OwnVolumes();
    private Settings settings;
    private List<LastAnswer> others = List.of();
    private String etag;
    private String reason = "";
    private boolean isFresh;
    private boolean isRequesting;
    private long requestedNanos;
    private long lostNanos;
    private long dueNanos;
    private Factors applied;
    private long changedNanos;
    private long tickNanos;
    private boolean isFailing;
    private long failingSinceNanos;
    private long failuresInARow;

    // Read by the metrics.
    private volatile long failures;
    private volatile long answeredNanos;
    private volatile boolean everAnswered;
    private volatile Limits limits;

    /** At first, the fallback applies and a request is due. */
    ReaderState(Settings settings, Faults faults, Journal journal, long nowNanos) {
        this.settings = settings;
        this.faults = faults;
        this.journal = journal;
        this.dueNanos = nowNanos;
    }

    /** The document with the limits for the broker's own volumes, and when it came. */
    private static final class Limits {
        private final Document document;
        private final long atNanos;

        Limits(Document document, long atNanos) {
            this.document = document;
            this.atNanos = atNanos;
        }
    }

    /** A request to send: the last document's entity tag, or null, and the wait. */
    static final class Request {
        final String etag;
        final int waitS;

        Request(String etag, int waitS) {
            this.etag = etag;
            this.waitS = waitS;
        }
    }

    /**
     * Adopts new settings; the answer to the current request is ignored.
     *
     * @param sameSidecar whether the sidecar knows the last document's entity tag.
     */
    void adopt(Settings newSettings, boolean sameSidecar, long nowNanos) {
        settings = newSettings;
        // The settings also decide how factors are applied.
        isFresh = true;
        if (!sameSidecar) {
            etag = null;
            isFailing = false;
        }
        isRequesting = false;
        own.failed();
        dueNanos = nowNanos;
    }

    /** Starts with this number of other sidecars, none of which has answered. */
    void adoptOthers(int count) {
        others = Stream.generate(LastAnswer::new).limit(count).collect(Collectors.toUnmodifiableList());
    }

    /**
     * Takes the document that was kept on disk, before the first answer. Its validity continues, and
     * its limits are used until there are newer ones.
     */
    void remember(Document kept, long ageMs, long nowNanos) {
        long atNanos = nowNanos - ms(ageMs);
        own.take(Answer.modified(kept, null, atNanos));
        own.failed();
        limits = new Limits(kept, atNanos);
    }

    /** Processes the answer of another sidecar, by its number from 0 on. */
    void onOther(int number, Answer answer) {
        if (number >= others.size()) {
            return;
        }
        LastAnswer other = others.get(number);
        if (answer.isFailure()) {
            other.failed();
        } else {
            other.take(answer);
            // A sidecar in observe mode, or switched off, has no limit, so the last limit stays.
            if (!own.answers && other.document.limit != null) {
                limits = new Limits(other.document, answer.atNanos);
            }
        }
        isFresh = true;
    }

    /** Takes new readings of the broker's own volumes. */
    void onReadings(Map<String, Volume> readings) {
        volumes.take(readings);
    }

    /** The sidecar's document, to be kept on disk; null if its last request failed. */
    DocumentFile.Found documentToKeep(long nowNanos) {
        return own.answers ? own.toKeep(nowNanos) : null;
    }

    /** The request that is due now; null if none is due. */
    Request nextRequest(long nowNanos) {
        if (isRequesting && nowNanos - lostNanos >= 0) {
            onAnswer(Answer.failed("it ended with neither an answer nor a failure"), nowNanos);
        }
        if (!settings.enabled || isRequesting || nowNanos - dueNanos < 0) {
            return null;
        }
        boolean isClose = own.expectsLimitBefore(nowNanos + ms(CLOSE_MS));
        int waitS = isClose || isThrottling() ? WAIT_THROTTLED_S : WAIT_S;
        Request request = new Request(etag, etag != null && own.answers ? waitS : 0);
        isRequesting = true;
        requestedNanos = nowNanos;
        lostNanos = nowNanos + TimeUnit.SECONDS.toNanos(request.waitS) + ms(LOST_MS);
        return request;
    }

    /** Processes the answer to the current request. */
    void onAnswer(Answer answer, long nowNanos) {
        isRequesting = false;
        if (answer.isFailure()) {
            own.failed();
            isFresh |= !others.isEmpty();
            if (answer.isOfLaterVersion) {
                // Faults are reported when factors are applied.
                isFresh |= faults.found(Faults.Kind.OUTDATED, answer.failure);
            }
            dueNanos = Math.max(nowNanos + ms(BACKOFF_MS), requestedNanos + ms(RETRY_MS));
            onFailure(answer.failure, nowNanos);
            return;
        }
        own.take(answer);
        faults.gone(Faults.Kind.OUTDATED);
        limits = new Limits(own.document, answer.atNanos);
        if (answer.document != null) {
            etag = answer.etag;
        }
        answeredNanos = answer.atNanos;
        everAnswered = true;
        isFresh = true;
        dueNanos = requestedNanos + ms(etag == null ? POLL_MS : BACKOFF_MS);
        if (isFailing) {
            isFailing = false;
            journal.info(
                    String.format(
                            Locale.ROOT, "The sidecar at %s answers again, after %d failures in %d s",
                            settings.url(), failuresInARow, seconds(nowNanos - failingSinceNanos)));
        }
    }

    private void onFailure(String problem, long nowNanos) {
        failures++;
        if (isFailing) {
            failuresInARow++;
            return;
        }
        isFailing = true;
        failingSinceNanos = nowNanos;
        failuresInARow = 1;
        String applies = "The fallback " + settings.fallback + " applies";
        if (own.isValid(nowNanos)) {
            applies = String.format(
                    Locale.ROOT,
                    "Its last factor, %s, is valid for another %d s, then the fallback %s applies",
                    own.document.factor, seconds(own.untilNanos - nowNanos), settings.fallback);
        }
        journal.warn("The request to the sidecar at " + settings.url() + " failed: " + problem + ". "
                + applies);
    }

    /** The factors to apply now; null if nothing has changed, no answer came, and no ramp is running. */
    Factors decide(long nowNanos) {
        Factors next = factors(nowNanos);
        boolean changed = applied == null || !sameAs(next, applied);
        if (changed) {
            logChange(next);
            changedNanos = nowNanos;
        }
        if (applied != null && !next.budgets.equals(applied.budgets)) {
            logBudgets(applied.budgets.factors, next.budgets.factors);
            isFresh = true;
        }
        boolean isTick = isSettling(nowNanos) && nowNanos - tickNanos >= 0;
        if (!changed && !isFresh && !isTick) {
            return null;
        }
        isFresh = false;
        applied = next;
        tickNanos = nowNanos + ms(TICK_MS);
        return next;
    }

    /** The last factors could not be applied: {@link #decide} returns them again. */
    void applyAgain() {
        isFresh = true;
    }

    /** When to call {@link #nextRequest} or {@link #decide} again, if no answer comes. */
    long nextNanos(long nowNanos) {
        long next = nowNanos + ms(LOST_MS);
        if (settings.enabled && !isRequesting) {
            next = earlier(next, dueNanos);
        }
        if (settings.enabled) {
            for (LastAnswer last : LastAnswer.all(own, others)) {
                next = last.isValid(nowNanos) ? earlier(next, last.changesNanos(nowNanos)) : next;
            }
        }
        return isSettling(nowNanos) ? earlier(next, tickNanos) : next;
    }

    /** The age of the sidecar's last valid answer, ms; -1 before the first. */
    long ageMs(long nowNanos) {
        return everAnswered ? TimeUnit.NANOSECONDS.toMillis(nowNanos - answeredNanos) : -1;
    }

    /** The age of the limits for the broker's own volumes, ms; -1: there are none. */
    long limitsAgeMs(long nowNanos) {
        Limits known = limits;
        return known == null || known.document.limit == null
                ? -1
                : TimeUnit.NANOSECONDS.toMillis(nowNanos - known.atNanos);
    }

    /** Whether a volume is, or may still count as, too full, and only those are throttled that write to it. */
    boolean needsTopics(Volume volume) {
        Limits known = limits;
        return known != null
                && known.document.isOfVolumes
                && (volume.usesReserve
                        || known.document.limit != null && known.document.limit.isReached(volume, true));
    }

    /** The limit of the broker's own volumes; null: there is none, or it is not known. */
    VolumeLine limit() {
        Limits known = limits;
        return known == null ? null : known.document.limit;
    }

    /** How many requests had no valid answer. */
    long failures() {
        return failures;
    }

    private Factors factors(long nowNanos) {
        if (!settings.enabled) {
            return Factors.DISABLED;
        }
        List<LastAnswer> counting = LastAnswer.counting(own, others, nowNanos);
        LastAnswer last = LastAnswer.strictest(counting);
        reason = last == null ? "" : last.document.reason;
        Factors factors =
                last == null ? Factors.fallback(settings.fallback) : ofSidecars(last, counting);
        // Another sidecar's override applies to another broker.
        if (last == own && own.document.source == Document.Source.OPERATOR) {
            return factors;
        }
        Factors observed = ofOwnVolumes(factors, limits == null ? null : limits.document);
        if (observed.global > 0.0 && LastAnswer.forecasts(own, others, nowNanos)) {
            reason = "no sidecar answers, and the last that did expected a volume at its limit by now";
            return observed.throttled(Factors.Source.FORECAST, false, Scope.ALL);
        }
        return observed;
    }

    private Factors ofSidecars(LastAnswer last, List<LastAnswer> counting) {
        Document document = last.document;
        return new Factors(
                last.factor(), LastAnswer.users(counting), Factors.Source.SIDECAR, document.generation,
                LastAnswer.leak(own, counting), document.stops && last.sees(), last.isSloped(),
                last.sees() ? LastAnswer.scope(last, counting) : Scope.ALL)
                .with(LastAnswer.budgets(counting));
    }

    /** The same factors, unless one of the broker's own volumes is too full; null: no limit is known. */
    private Factors ofOwnVolumes(Factors factors, Document lines) {
        boolean violates = volumes.violate(lines == null ? null : lines.limit);
        boolean stops = volumes.stop(lines == null ? null : lines.stopLine);
        if (!violates) {
            return factors;
        }
        Scope scope = lines != null && lines.isOfVolumes ? volumes.scope() : Scope.ALL;
        scope = factors.global < 1.0 ? factors.scope.and(scope) : scope;
        if (factors.global == 0.0 && (factors.admitsNobody || !stops)) {
            return factors.of(scope);
        }
        reason = volumes.reason();
        return factors.throttled(Factors.Source.LOCAL, stops, scope);
    }

    private boolean isThrottling() {
        return applied != null
                && (applied.global < 1.0
                        || applied.users.values().stream().anyMatch(factor -> factor < 1.0));
    }

    /** Whether factors must be applied again, since a ramp ends by time only when they are. */
    private boolean isSettling(long nowNanos) {
        return applied != null && nowNanos - changedNanos <= ms(settings.releaseMs() + 2 * TICK_MS);
    }

    private static boolean sameAs(Factors one, Factors other) {
        // Between soft limit and limit, the factor changes without a log line.
        return one.source == other.source
                && one.isSloped == other.isSloped
                && (one.isSloped || one.global == other.global)
                && one.admitsNobody == other.admitsNobody
                && one.scope.equals(other.scope)
                && one.users.equals(other.users);
    }

    private void logChange(Factors next) {
        String fallback = "the fallback " + settings.fallback + " applies";
        switch (next.source) {
            case DISABLED:
                journal.warn("The quota callback is switched off: every client has its own quota");
                break;
            case FALLBACK:
                if (own.document == null) {
                    journal.info("Until the sidecar at " + settings.url() + " answers, " + fallback);
                } else {
                    journal.warn("The last answer of the sidecar at " + settings.url()
                            + " has expired: " + fallback);
                }
                break;
            default:
                logFactors(next);
        }
    }

    private void logFactors(Factors next) {
        String line = "Produce quotas are multiplied by " + next.global
                + (next.admitsNobody ? ", and nothing is admitted" : "")
                + " (" + origin(next) + (reason.isEmpty() ? "" : ": " + reason) + ")"
                + (next.users.isEmpty()
                        ? ""
                        : ", those of " + next.users.size() + " users by their own factors");
        if (next.global < 1.0) {
            journal.warn(line);
        } else {
            journal.info(line);
        }
    }

    /** Logs which owners' writers begin or cease to be slowed; steps in between are not logged. */
    private void logBudgets(Map<String, Double> before, Map<String, Double> now) {
        now.forEach((owner, factor) -> {
            boolean was = before.getOrDefault(owner, 1.0) == 0.0;
            if (!before.containsKey(owner) || was != (factor == 0.0)) {
                journal.warn("Clients that write to topics of " + Journal.line(owner) + " are "
                        + (factor == 0.0 ? "paused" : "slowed") + ": its storage budget is "
                        + (factor == 0.0 ? "used up" : "nearly used up"));
            }
        });
        before.keySet().stream().filter(owner -> !now.containsKey(owner)).forEach(owner ->
                journal.info("Clients that write to topics of " + Journal.line(owner)
                        + " are no longer slowed by its storage budget"));
    }

    private static String origin(Factors factors) {
        switch (factors.source) {
            case LOCAL:
                return "by this broker's own volumes";
            case FORECAST:
                return "by forecast";
            default:
                return "generation " + factors.generation;
        }
    }

    private static long earlier(long one, long other) {
        return one - other <= 0 ? one : other;
    }

    private static long ms(long millis) {
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }

    private static long seconds(long nanos) {
        return TimeUnit.NANOSECONDS.toSeconds(nanos);
    }
}
