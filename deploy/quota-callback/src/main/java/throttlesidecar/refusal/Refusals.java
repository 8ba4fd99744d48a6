package throttlesidecar.refusal;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.quota.ClientQuotaType;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Journal;
import throttlesidecar.observability.LargestClients;
import throttlesidecar.quotas.Quotas;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.Recent;
import throttlesidecar.support.RunningTime;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.TagSet;
import throttlesidecar.throttling.TagSets;

/**
 * Which produce requests are refused before anything of them is appended.
 *
 * <p>While a factor is 0, a connection from before the throttle is never refused: it pauses, and that
 * bounds what it lands. One that is new lands a request before any pause can begin, so it is refused
 * when its tag set has used up its share of the leak budget ({@link LeakShares}), and from then on
 * until the release. Below the stop line all are refused.
 *
 * <p>A broker accepts any first sequence of an idempotent producer that is new to a partition. So of
 * the requests that a client has in flight none may be admitted behind a refused one, or the refused
 * one comes out of order later: librdkafka then takes its records for acknowledged, and Java stands
 * still until they expire. That is why a verdict lasts, and why after the release requests of
 * such a connection are refused, without a mute, until one comes after a break: then the client has had
 * all answers, and sends the oldest first. The break has to be {@link #LONGEST_BREAK_MS} for
 * {@link #LONGEST_MS}, since what is in flight may be uploaded slowly, and less and less then for
 * clients that try again more often, down to {@link #SHORTEST_BREAK_MS} after {@link #SHRINKS_MS}. One
 * that makes none, with many partitions, is muted now and again: what it has to send comes at once
 * after that, and its partitions wait together. What lay in the socket during a mute did not come
 * after a break. After {@link #MOST_BREAK_MS} it is admitted in any case.
 * All of this counts in the broker's {@link RunningTime}: what lay in its socket while it stood still
 * did not come after a break.
 *
 * <p>Request threads call {@link #check}; while nothing is throttled that costs two look-ups.
 */
public final class Refusals {
    /** Since the last refusal, ms, at the release: as an upload of 1 MB at 2 MB/s takes. */
    public static final long LONGEST_BREAK_MS = 500;

    /** Less than clients wait at least before they try again: 100 ms, give or take a fifth. */
    static final long SHORTEST_BREAK_MS = 50;

    /** How long after the release the break is the longest, ms: clients are back by then that wait
     * longer from try to try, as all newer ones do. */
    public static final long LONGEST_MS = 4000;

    /** How long after the release it is the shortest, ms. */
    public static final long SHRINKS_MS = 8000;

    /** From the release to the first mute, and from one to the next, ms: it lasts a second. */
    static final long MUTES_MS = 3000;

    /** How long after the release a client without a break is refused, ms. */
    public static final long MOST_BREAK_MS = 20_000;

    /**
     * How long after the release the last verdicts are forgotten, ms: of clients that send nothing any
     * more. Those that do, and make no break, have theirs for {@link #MOST_BREAK_MS} from their next
     * request on.
     */
    public static final long FORGET_MS = 2 * MOST_BREAK_MS;

    /** Connections that were refused; of more than these the oldest are judged anew. */
    static final int MOST_REFUSED = 65_536;

    private static final long LINE_NANOS = 60_000_000_000L;
    private static final long NANOS_PER_MS = 1_000_000L;

    /** Why a request is refused. */
    public enum Reason {
        /** The connection is newer than the throttle, and its share of the leak budget is used up. */
        NEW_CONNECTION("new connections are refused until the release"),
        /** A volume is below the stop line. */
        STOP_LINE("all producers are refused, since a volume is nearly full"),
        /** After a refusal, the client may still have requests in flight. */
        RELEASE("this connection is refused until it has waited for its answers after the release");

        /** For the client and the broker's log. */
        private final String words;

        Reason(String words) {
            this.words = words;
        }
    }

    private final Connections connections;
    private final Quotas quotas;
    private final TagSets tagSets;
    private final Enforcement enforcement;
    private final Supplier<Settings> terms;
    private final ExcludedWriters writers;
    private final RefusalLog log;
    private final Clocks clocks;
    private final RunningTime running;
    private final Journal journal;
    private final Recent<String, Verdict> verdicts = new Recent<>(MOST_REFUSED);
    private final Map<Reason, LongAdder> counts = new EnumMap<>(Reason.class);
    private final LargestClients mostRefused = new LargestClients(100, 10);
    private final AtomicLong lineAtNanos;
    private final LongAdder sinceLine = new LongAdder();
    private volatile boolean wasStopping;
    private volatile long releasedNanos;

    public Refusals(
            Connections connections,
            Quotas quotas,
            TagSets tagSets,
            Enforcement enforcement,
            Supplier<Settings> terms,
            ExcludedWriters writers,
            RefusalLog log,
            Clocks clocks,
            RunningTime running,
            Journal journal) {
        this.connections = connections;
        this.quotas = quotas;
        this.tagSets = tagSets;
        this.enforcement = enforcement;
        this.terms = terms;
        this.writers = writers;
        this.log = log;
        this.clocks = clocks;
        this.running = running;
        this.journal = journal;
        for (Reason reason : Reason.values()) {
            counts.put(reason, new LongAdder());
        }
        releasedNanos = running.nanos();
        lineAtNanos = new AtomicLong(clocks.nanos() - LINE_NANOS);
    }

    /** A connection that was refused; Kafka handles one request of it at a time. */
    private static final class Verdict {
        private volatile long lastNanos;
        private volatile long releasedNanos;
        private volatile long mutedNanos;
        private volatile boolean isReleased;
        private volatile boolean isMuted;

        /** Whose requests were refused when this one's last was. */
        private volatile Scope scope = Scope.ALL;

        /** Whether the release has come for it too: the client has nothing in flight. */
        boolean ends(long nanos) {
            if (!isReleased) {
                // Until now it was muted after each refusal, which makes breaks.
                releasedNanos = nanos;
                isReleased = true;
                return false;
            }
            long sinceMs = (nanos - releasedNanos) / NANOS_PER_MS;
            boolean paused = !isMuted && nanos - lastNanos >= breakMs(sinceMs) * NANOS_PER_MS;
            return paused || sinceMs >= MOST_BREAK_MS;
        }

        private static long breakMs(long sinceMs) {
            long shrinksMs = Math.max(0, sinceMs - LONGEST_MS);
            long shrunkMs =
                    (LONGEST_BREAK_MS - SHORTEST_BREAK_MS) * shrinksMs / (SHRINKS_MS - LONGEST_MS);
            return Math.max(SHORTEST_BREAK_MS, LONGEST_BREAK_MS - shrunkMs);
        }

        /** A request is refused; returns whether the connection is to be muted. */
        boolean refused(Reason reason, Scope newScope, long nanos) {
            lastNanos = nanos;
            scope = newScope;
            isReleased = reason == Reason.RELEASE;
            long last = Math.max(releasedNanos, mutedNanos);
            isMuted = !isReleased || nanos - last >= MUTES_MS * NANOS_PER_MS;
            if (isMuted) {
                mutedNanos = nanos;
            }
            return isMuted;
        }
    }

    /**
     * Refuses a produce request, or returns.
     *
     * @param id the connection's.
     * @param clientId may be null or empty.
     * @param actions what it is to do, of which some may be denied.
     * @param results for each action.
     * @throws RefusedException it is refused.
     */
    public void check(
            String id,
            KafkaPrincipal principal,
            String clientId,
            List<Action> actions,
            List<AuthorizationResult> results) {
        Mute.none();
        boolean isKnown = connections.knows(id);
        boolean isFree = !enforcement.stopsAnybody() && verdicts.isEmpty();
        Scope scope = enforcement.scope();
        // One that is known has written to a topic that is not excluded.
        if (isFree && isKnown && writers.isEmpty() && scope.isAll()) {
            return;
        }
        Settings now = terms.get();
        boolean isInScope = scope.has(actions, results);
        if (!scope.isAll()) {
            enforcement.noteScope(principal, clientId, isInScope);
        }
        String name = principal.getName();
        boolean onlyExcluded =
                !Scope.writesToAny(actions, results, topic -> !now.excludesTopic(topic));
        writers.saw(name, clientId, onlyExcluded);
        if (onlyExcluded) {
            return;
        }
        if (isFree) {
            connections.note(id);
            return;
        }
        check(now, id, isKnown, name, clientId, isInScope);
    }

    private void check(
            Settings now,
            String id,
            boolean isKnown,
            String principal,
            String clientId,
            boolean isInScope) {
        long nanos = running.nanos();
        Quotas.Client client = quotas.client(principal, clientId);
        Map<String, String> tags = client.tags(ClientQuotaType.PRODUCE);
        String user = tags.get(TagSet.USER_TAG);
        boolean stops =
                now.refuses
                        && enforcement.stops(user, tags.get(TagSet.CLIENT_ID_TAG), isInScope);
        Verdict verdict = verdicts.get(id);
        if (stops && isInScope && enforcement.admitsNobody()) {
            refuse(id, verdict, Reason.STOP_LINE, nanos, principal, clientId);
        }
        if (stops && !isKnown) {
            if (verdict != null || !enforcement.admits(client.tagSet(tagSets), user, isInScope)) {
                refuse(id, verdict, Reason.NEW_CONNECTION, nanos, principal, clientId);
            }
            return;
        }
        if (verdict != null && !isInScope && verdict.scope.equals(enforcement.scope())) {
            // To what it writes now it has nothing in flight that was refused.
            return;
        }
        if (verdict != null) {
            if (!verdict.ends(nanos)) {
                refuse(id, verdict, Reason.RELEASE, nanos, principal, clientId);
            }
            verdicts.remove(id);
        }
        // What is free in a throttle makes no connection one from before it.
        if (isInScope || isKnown) {
            connections.note(id);
        }
        forget(nanos);
    }

    private void refuse(
            String id,
            Verdict last,
            Reason reason,
            long nanos,
            String principal,
            String clientId) {
        Verdict verdict = last == null ? verdicts.put(id, new Verdict()) : last;
        boolean mutes = verdict.refused(reason, enforcement.scope(), nanos);
        counts.get(reason).increment();
        mostRefused.add(principal, clientId, 1);
        sinceLine.increment();
        writeLine(reason, principal, clientId);
        log.filter();
        if (mutes) {
            Mute.next(principal, clientId);
        }
        throw new RefusedException(
                "Producers to this broker are throttled by throttle-sidecar: " + reason.words
                        + ". This request was not appended, and can be sent again. Why it is so, the"
                        + " operators of the cluster know.");
    }

    /** Whether a minute has passed since the last line; if so, this is one. */
    private boolean isLineDue() {
        long nanos = clocks.nanos();
        long last = lineAtNanos.get();
        return nanos - last >= LINE_NANOS && lineAtNanos.compareAndSet(last, nanos);
    }

    /** One line a minute at most. */
    private void writeLine(Reason reason, String principal, String clientId) {
        if (isLineDue()) {
            journal.warn(
                    String.format(
                            "Refused %d produce requests; the last was of %s with client-id %s: %s",
                            sinceLine.sumThenReset(), principal, clientId, reason.words));
        }
    }

    /** Factors were applied. One thread at a time calls this. */
    public void applied() {
        long nanos = running.nanos();
        boolean stops = enforcement.stopsAnybody();
        if (stops && !wasStopping) {
            mostRefused.clear();
            if (!connections.hasAuthorizer()) {
                journal.info(
                        "Producers are throttled by pauses alone, which can't stop clients that dial"
                                + " anew: authorizer.class.name is not "
                                + Settings.AUTHORIZER_CLASS);
            }
        }
        if (!stops && wasStopping) {
            releasedNanos = nanos;
            if (sinceLine.sum() > 0 && isLineDue()) {
                journal.warn("Refused " + sinceLine.sumThenReset() + " more until the release");
            }
        }
        wasStopping = stops;
        forget(nanos);
    }

    /** Some time after the last release nobody's verdict counts any more. */
    private void forget(long nanos) {
        // Of the two, the first changes first when a throttle begins, the second last when it ends.
        boolean isFree = !enforcement.stopsAnybody() && !wasStopping;
        if (isFree && nanos - releasedNanos >= FORGET_MS * NANOS_PER_MS) {
            verdicts.clear();
        }
    }

    /** Whether any verdict lasts, so that breaks matter. */
    public boolean waits() {
        return !verdicts.isEmpty();
    }

    /** How many requests were refused since the start. */
    public long total() {
        return counts.values().stream().mapToLong(LongAdder::sum).sum();
    }

    /** How many for one reason. */
    public long count(Reason reason) {
        return counts.get(reason).sum();
    }

    /** The clients of which most were refused since the last throttle began. */
    public String mostRefused() {
        return mostRefused.toString();
    }

    /** How many connections are known. */
    public int connections() {
        return connections.size();
    }

    /** Whether refusals are kept out of the broker's log. */
    public boolean isLogFiltered() {
        return log.isFiltered();
    }

    /** An error that no client is to see: nothing is refused. */
    public void failed(Throwable error) {
        enforcement.failed(error);
    }

    /** Whether an authorizer of ours asks. */
    public boolean hasAuthorizer() {
        return connections.hasAuthorizer();
    }
}
