package throttlesidecar.refusal;

import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
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
import throttlesidecar.throttling.ActiveThrottles;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.TagSet;
import throttlesidecar.throttling.TagSets;

/**
 * Refuses produce requests before the broker appends anything of them.
 *
 * <p>While a factor is 0, a connection that is older than the throttle is never refused: it pauses,
 * which limits the bytes that it lands. A new connection lands a request before any pause can begin. It
 * is therefore refused once its tag set has used up its share of the leak budget ({@link LeakShares}),
 * and from then on until the release. Below the stop line every connection is refused.
 *
 * <p>Refusals continue after the release, because a broker accepts any first sequence of an idempotent
 * producer that is new to a partition. If the broker admitted a request behind a refused one of the
 * same client, the refused request would later arrive out of order: librdkafka then takes its records
 * for acknowledged, and the Java client stands still until its records expire. So a refused connection
 * is refused, without a mute, until a request comes after a break. By then the client has received all
 * answers, and it sends its oldest request first.
 *
 * <p>The break has to last {@link #LONGEST_BREAK_MS} for the first {@link #LONGEST_MS}, since requests
 * in flight may be uploaded slowly. For clients that retry more often it then shrinks, to {@link
 * #SHORTEST_BREAK_MS} after {@link #SHRINKS_MS}. A client with many partitions may never make a break.
 * Its connection is muted from time to time, so that its partitions wait together and its requests come
 * at once. Requests that waited in the socket during a mute do not count as coming after a break. After
 * {@link #MOST_BREAK_MS} the connection is admitted in any case.
 *
 * <p>All times are {@link RunningTime}, so that a pause of the broker itself does not count as a break.
 *
 * <p>Request threads call {@link #check}; while nothing is throttled, it costs two look-ups.
 */
public final class Refusals {
    /** The break that is needed at the release, ms: an upload of 1 MB at 2 MB/s takes as long. */
    public static final long LONGEST_BREAK_MS = 500;

    /** The break that is needed later, ms: less than a client's shortest retry delay, 80 to 120 ms. */
    static final long SHORTEST_BREAK_MS = 50;

    /** How long after the release the longest break is needed, ms: newer clients, whose retry delay grows,
     * have retried by then. */
    public static final long LONGEST_MS = 4000;

    /** How long after the release the shortest break is enough, ms. */
    public static final long SHRINKS_MS = 8000;

    /** From the release to the first mute, and from one mute to the next, ms. A mute lasts 1 s. */
    static final long MUTES_MS = 3000;

    /** How long after the release a client without a break is refused, ms. */
    public static final long MOST_BREAK_MS = 20_000;

    /**
     * How long after the release all verdicts are dropped, ms: the rest are of clients that no longer
     * send anything. A client that sends keeps its verdict for at most {@link #MOST_BREAK_MS} from its
     * next request on.
     */
    public static final long FORGET_MS = 2 * MOST_BREAK_MS;

    /** The most refused connections that are remembered; beyond it the oldest are forgotten. */
    static final int MOST_REFUSED = 65_536;

    private static final long LINE_NANOS = 60_000_000_000L;
    private static final long NANOS_PER_MS = 1_000_000L;

    /** Why a request is refused. */
    public enum Reason {
        /** The connection is newer than the throttle, and its share of the leak budget is used up. */
        NEW_CONNECTION("new connections are refused until the release"),
        /** A volume is below the stop line. */
        STOP_LINE("all producers are refused, since a volume is nearly full"),
        /** The request writes to topics whose owner has used up its storage budget. */
        BUDGET("the storage budget of a topic's owner is used up"),
        /** The client may still have requests in flight from before the release. */
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
            Connections connections, Quotas quotas, TagSets tagSets, Enforcement enforcement,
            Supplier<Settings> terms, ExcludedWriters writers, RefusalLog log, Clocks clocks,
            RunningTime running, Journal journal) {
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

        /** The scope at this connection's last refusal. */
        private volatile Scope scope = Scope.ALL;

        /** The owner whose budget was the reason of the last refusal; null if another reason was. */
        private volatile String owner;

        /** Whether the client has nothing in flight any more, so that the verdict ends. */
        boolean ends(long nanos) {
            if (!isReleased) {
                // Until now each refusal muted the connection, which looks like a break.
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

        /** Notes a refusal and returns whether to mute the connection. */
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
     * @param isBroker whether a broker of this cluster sent it; then it is not refused or paused.
     * @param actions the request's actions, of which some may be denied.
     * @param results the result for each action.
     * @throws RefusedException the request is refused.
     */
    public void check(
            String id, KafkaPrincipal principal, String clientId, boolean isBroker,
            List<Action> actions, List<AuthorizationResult> results) {
        Mute.none();
        if (isBroker) {
            writers.saw(principal.getName(), clientId, true);
            return;
        }
        boolean isKnown = connections.knows(id);
        ActiveThrottles throttles = enforcement.throttles();
        boolean isFree = !throttles.isStopping && verdicts.isEmpty();
        Scope scope = throttles.scope;
        // A known connection has written to a topic that is not excluded.
        boolean areBudgetsFree = throttles.areBudgetsFree;
        if (isFree && isKnown && writers.isEmpty() && scope.isAll() && areBudgetsFree) {
            return;
        }
        Settings now = terms.get();
        boolean isInScope = scope.has(actions, results);
        if (!scope.isAll()) {
            enforcement.noteScope(principal, clientId, scope, isInScope);
        }
        String name = principal.getName();
        boolean onlyExcluded = !Scope.writesToAny(actions, results, topic -> !now.excludesTopic(topic));
        writers.saw(name, clientId, onlyExcluded);
        if (onlyExcluded) {
            return;
        }
        String owner = throttles.factors.budgets.strictest(actions, results);
        if (owner != null) {
            enforcement.noteOwner(principal, clientId, owner);
        }
        if (isFree) {
            connections.note(id);
            return;
        }
        check(throttles, now, id, isKnown, name, clientId, isInScope, owner);
    }

    private void check(
            ActiveThrottles throttles, Settings now, String id, boolean isKnown, String principal,
            String clientId, boolean isInScope, String owner) {
        long nanos = running.nanos();
        Quotas.Client client = quotas.client(principal, clientId);
        Map<String, String> tags = client.tags(ClientQuotaType.PRODUCE);
        String user = tags.get(TagSet.USER_TAG);
        boolean stops = now.refuses
                && throttles.stops(user, tags.get(TagSet.CLIENT_ID_TAG), isInScope);
        Verdict verdict = verdicts.get(id);
        if (stops && isInScope && throttles.factors.admitsNobody) {
            refuse(id, verdict, Reason.STOP_LINE, nanos, principal, clientId);
        }
        boolean isExcluded = now.excludes(user, tags.get(TagSet.CLIENT_ID_TAG));
        if (now.refuses && !isExcluded && throttles.stopsOwner(owner)) {
            refuse(id, verdict, Reason.BUDGET, nanos, principal, clientId, owner);
        }
        if (stops && !isKnown) {
            if (verdict != null || !enforcement.admits(client.tagSet(tagSets), user, isInScope)) {
                refuse(id, verdict, Reason.NEW_CONNECTION, nanos, principal, clientId);
            }
            return;
        }
        if (verdict != null && !isInScope && verdict.scope.equals(throttles.scope)) {
            // The client has no refused request in flight to the topics that it writes to now.
            return;
        }
        if (verdict != null && throttles.stopsOwner(verdict.owner)) {
            // The same holds for topics of others than the owner whose budget is used up.
            return;
        }
        if (verdict != null) {
            if (!verdict.ends(nanos)) {
                refuse(id, verdict, Reason.RELEASE, nanos, principal, clientId);
            }
            verdicts.remove(id);
        }
        // A request out of scope does not make a connection older than the throttle.
        if (isInScope || isKnown) {
            connections.note(id);
        }
        forget(nanos);
    }

    private void refuse(
            String id, Verdict last, Reason reason, long nanos, String principal, String clientId) {
        refuse(id, last, reason, nanos, principal, clientId, null);
    }

    private void refuse(
            String id, Verdict last, Reason reason, long nanos, String principal, String clientId,
            String owner) {
        Verdict verdict = last == null ? verdicts.put(id, new Verdict()) : last;
        verdict.owner = owner;
        boolean mutes = verdict.refused(reason, enforcement.throttles().scope, nanos);
        counts.get(reason).increment();
        mostRefused.add(principal, clientId, 1);
        sinceLine.increment();
        if (isLineDue()) {
            journal.warn(
                    String.format(
                            Locale.ROOT,
                            "Refused %d produce requests; the last was from %s with client-id %s: %s",
                            sinceLine.sumThenReset(), LargestClients.shown(principal),
                            LargestClients.shown(clientId), reason.words));
        }
        log.filter();
        if (mutes) {
            Mute.next(principal, clientId);
        }
        throw log.refusal(
                "Producers to this broker are throttled by throttle-sidecar: " + reason.words
                        + ". This request was not appended and can be sent again. The operators of the"
                        + " cluster know the reason.");
    }

    /** Whether a minute has passed since the last log line. If so, the caller writes one now. */
    private boolean isLineDue() {
        long nanos = clocks.nanos();
        long last = lineAtNanos.get();
        return nanos - last >= LINE_NANOS && lineAtNanos.compareAndSet(last, nanos);
    }

    /** Reacts to factors that were just applied. One thread at a time calls it. */
    public void applied() {
        long nanos = running.nanos();
        boolean stops = enforcement.throttles().isStopping;
        if (stops && !wasStopping) {
            mostRefused.clear();
            log.begin();
            if (!connections.hasAuthorizer()) {
                journal.info(
                        "Producers are throttled by pauses only, which can't stop clients that open new"
                                + " connections. To refuse their requests, set authorizer.class.name="
                                + Settings.AUTHORIZER_CLASS);
            }
        }
        if (!stops && wasStopping) {
            releasedNanos = nanos;
            if (sinceLine.sum() > 0 && isLineDue()) {
                journal.warn(
                        "Refused " + sinceLine.sumThenReset()
                                + " more produce requests until the release");
            }
        }
        wasStopping = stops;
        forget(nanos);
    }

    /** Drops all verdicts some time after the last release. */
    private void forget(long nanos) {
        // When a throttle begins, the first of the two changes first; when it ends, the second changes
        // last.
        boolean isFree = !enforcement.throttles().isStopping && !wasStopping;
        if (isFree && nanos - releasedNanos >= FORGET_MS * NANOS_PER_MS) {
            verdicts.clear();
        }
    }

    /** Whether a connection is refused, so that breaks matter. */
    public boolean waits() {
        return !verdicts.isEmpty();
    }

    /** How many requests were refused since the start. */
    public long total() {
        return counts.values().stream().mapToLong(LongAdder::sum).sum();
    }

    /** How many requests were refused for one reason. */
    public long count(Reason reason) {
        return counts.get(reason).sum();
    }

    /** The clients with the most refused requests since the last throttle began. */
    public String mostRefused() {
        return mostRefused.toString();
    }

    /** Whether refusals are kept out of the broker's log. */
    public boolean isLogFiltered() {
        return log.isFiltered();
    }

    /** Notes an error that clients must not see: their requests are not refused. */
    public void failed(Throwable error) {
        enforcement.failed(error);
    }
}
