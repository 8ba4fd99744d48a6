package throttlesidecar.throttling;

import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.LargestClients;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.Sanitized;
import throttlesidecar.throttling.Throttle.Mode;

/**
 * Turns factors into the quotas that Kafka throttles by.
 *
 * <p>Kafka pauses a client by S / T - W: S bytes in the rate's window of W seconds, quota T. So the
 * quota T = S / (W + P), computed when S has landed (see {@link TagSetConfig}), makes a pause of P;
 * that is the same at any rate, quota, window and request size, and small enough for any integer. A
 * {@link Pacer} computes P, and the {@link TagSet} counts what has landed since the last request.
 *
 * <p>Example: 11 MB in a window of 10.5 s and a pause of 4 s: T = 758,620 B/s, and Kafka computes
 * 11,000,000 / 758,620 - 10.5 = 4.0 s.
 *
 * <p>Request threads call {@link #beforeRecord} and {@link #quota}; while nothing is throttled that
 * costs some volatile reads. One other thread calls {@link #apply}.
 */
public final class Enforcement {
    /** Less is rounding, since S is computed as rate x window. */
    static final double ONE_BYTE = 0.5;

    /** How often the clock may tick while a rate is read; it does so once in thousands. */
    private static final int ATTEMPTS = 3;

    private static final long NEVER = Long.MIN_VALUE;
    private static final double MS_PER_S = 1000.0;

    private final TagSets tagSets;
    private final OwnLimit limits;
    private final Supplier<Settings> settings;
    private final Clocks clocks;
    private final AtomicLong longestPauseMs = new AtomicLong();
    private final Faults faults = new Faults();
    private final Canary canary = new Canary();
    private final ScopedRequests written = new ScopedRequests();
    private final LargestClients inScope = new LargestClients(500, 50);

    /** The request whose quota this thread will ask for. */
    private final ThreadLocal<Charged> charged = ThreadLocal.withInitial(Charged::new);

    private volatile ActiveThrottles state;
    private long epochs;
    private long furthestMs = Long.MIN_VALUE;

    /**
     * Nothing is throttled at first.
     *
     * @param tagSets whose quotas are computed.
     * @param limits the quotas that operators set.
     * @param settings in force; may change.
     * @param clocks the clocks.
     */
    public Enforcement(TagSets tagSets, OwnLimit limits, Supplier<Settings> settings, Clocks clocks) {
        this.tagSets = tagSets;
        this.limits = limits;
        this.settings = settings;
        this.clocks = clocks;
        this.state =
                new ActiveThrottles(
                        Factors.DISABLED,
                        Throttle.free(clocks.nanos()),
                        Map.of(),
                        settings.get(),
                        Scope.ALL);
    }

    /**
     * Puts factors in force. Called by one thread at a time: at each change, and once a second while
     * something is throttled.
     */
    public void apply(Factors factors) {
        Settings now = settings.get();
        long nanos = clocks.nanos();
        furthestMs = Math.max(furthestMs, clocks.nowMs());
        if (factors.source() == Factors.Source.DISABLED) {
            state = new ActiveThrottles(factors, Throttle.free(nanos), Map.of(), now, Scope.ALL);
            written.end();
            return;
        }
        ActiveThrottles old = state;
        // A wall clock that is behind what it was: until it is there again, Kafka's windows don't
        // end, and what it says are rates are sums that only grow.
        boolean known = clocks.nowMs() >= furthestMs - (long) MS_PER_S;
        RatesBefore rates = new RatesBefore(tagSets, old, now, nanos, known, this::failed);
        Throttle all = next(old.all, null, factors.global(), now, nanos, rates);
        Map<String, Throttle> users = new HashMap<>();
        old.users.forEach((user, throttle) -> {
            Throttle next = next(throttle, user, 1.0, now, nanos, rates);
            if (next.isRecent(nanos)) {
                users.put(user, next);
            }
        });
        factors.users().forEach((name, factor) -> {
            String user = Sanitized.of(name);
            Throttle before = old.users.getOrDefault(user, Throttle.free(nanos));
            users.put(user, next(before, user, factor, now, nanos, rates));
        });
        // Who was free in the throttle has no ramp after it.
        Scope scope = factors.global() < 1.0 ? factors.scope() : old.scope;
        ActiveThrottles next = new ActiveThrottles(factors, all, users, now, scope);
        if (old.scope.isAll() && !next.scope.isAll()) {
            written.begin(nanos);
            inScope.clear();
        }
        state = next;
        if (next.scope.isAll()) {
            written.end();
        }
    }

    private Throttle next(
            Throttle old, String user, double factor, Settings now, long nanos, RatesBefore rates) {
        if (old.begins(factor)) {
            canary.reset();
            return old.begin(factor, rates.measure(user), ++epochs, nanos);
        }
        if (factor < 1.0) {
            return factor == old.factor() ? old : old.change(factor, ++epochs, nanos);
        }
        Throttle next = old.release(epochs + 1, nanos, now.releaseMs());
        epochs += next == old ? 0 : 1;
        return next;
    }

    /** A request that a thread charges. */
    private static final class Charged {
        /** When it came, by the wall clock: the time that Kafka records it with, or later; or NEVER. */
        private long recordedMs = NEVER;

        /** Whether nothing of it lands. */
        private boolean denied;

        /** Whether the factor for all is for it. */
        private boolean isInScope = true;

        /** Whose it is, where a scope is in force; else null. */
        private KafkaPrincipal principal;
        private String clientId;

        void begin(long nowMs, boolean isDenied) {
            recordedMs = nowMs;
            denied = isDenied;
            isInScope = true;
            principal = null;
        }

        void scoped(boolean inScope, KafkaPrincipal newPrincipal, String newClientId) {
            isInScope = inScope;
            principal = newPrincipal;
            clientId = newClientId;
        }
    }

    /** A tag set has its first request, whose bytes are the first that count. */
    void appeared(TagSet tagSet) {
        tagSet.sinceNanos(clocks.nanos());
        ActiveThrottles now = state;
        if (!now.isFree) {
            tagSet.begin(now.epoch(tagSet.user()), 0.0);
        }
    }

    /**
     * On the request path, before a request of the tag set is recorded, whoever it is of.
     *
     * @param tagSet null before its first request.
     */
    void beforeRecord(TagSet tagSet) {
        beforeRecord(tagSet, null, null);
    }

    /**
     * The same.
     *
     * @param principal the request's own object; null: it is in scope.
     * @param clientId may be null or empty.
     */
    public void beforeRecord(TagSet tagSet, KafkaPrincipal principal, String clientId) {
        ActiveThrottles now = state;
        if (tagSet != null) {
            tagSets.install(tagSet);
        }
        if (now.isFree) {
            return;
        }
        Charged request = charged.get();
        request.begin(clocks.nowMs(), DeniedRequest.isDue());
        if (!now.scope.isAll() && principal != null) {
            boolean isInScope = written.isInScope(principal, clientId, clocks.nanos());
            request.scoped(isInScope, principal, clientId);
        }
        if (tagSet == null ? now.all.mode() == Mode.FREE : now.isFree(tagSet)) {
            return;
        }
        canary.request();
        if (tagSet == null) {
            return;
        }
        KafkaMetric metric = tagSet.metric();
        if (metric == null) {
            return;
        }
        long epoch = now.epoch(tagSet.user());
        TagSet.Account account = tagSet.account(epoch);
        // Before what has landed is read: whatever is counted meanwhile is not in that.
        long counted = account == null ? 0 : account.counted();
        double landed;
        try {
            landed = landedUnlocked(metric);
        } catch (ConcurrentModificationException raced) {
            // The rate's first samples are being made: nothing can have left its window yet.
            return;
        }
        if (account == null) {
            tagSet.begin(epoch, landed);
        } else {
            account.expire(counted, landed);
        }
    }

    /** S without the sensor's monitor, while others may record; infinite if it could not be read. */
    private double landedUnlocked(KafkaMetric metric) {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            // Taken before the rate: what has left the window by then was purged under Kafka's
            // lock, so that windowSize(), which takes none, finds nothing to purge.
            long nowMs = clocks.nowMs();
            double rate = (Double) metric.metricValue();
            Rate measurable = (Rate) metric.measurable();
            double window = measurable.windowSize(metric.config(), nowMs) / MS_PER_S;
            // Of one ms: a window may be a second shorter at the next.
            if (clocks.nowMs() == nowMs) {
                return rate * window;
            }
        }
        return Double.POSITIVE_INFINITY;
    }

    /** The quota of a tag set. Kafka requests it under the monitor of the tag set's sensor. */
    Quota quota(TagSet tagSet, TagSetConfig config) {
        Quota own = tagSet.own(limits);
        ActiveThrottles now = state;
        if (now.isFree(tagSet) || tagSet.isCompared()) {
            return own;
        }
        KafkaMetric metric = tagSet.metric();
        TagSet.Account account = tagSet.account(now.epoch(tagSet.user()));
        if (metric == null || account == null) {
            return own;
        }
        canary.quota();
        Charged request = charged.get();
        // With the time by now, a window that ended while this thread waited for the sensor would
        // cost the pause a second.
        long nowMs = request.recordedMs == NEVER ? clocks.nowMs() : request.recordedMs;
        boolean denied = request.denied;
        boolean isInScope = request.isInScope;
        KafkaPrincipal principal = request.principal;
        request.begin(NEVER, false);
        Rate rate = (Rate) metric.measurable();
        double observed = rate.measure(config, nowMs);
        double window = rate.windowSize(config, nowMs) / MS_PER_S;
        double landed = observed * window;
        double bytes = account.count(landed);
        if (isInScope && principal != null && bytes > 0.0) {
            inScope.add(principal.getName(), request.clientId, Math.round(bytes));
        }
        if (!denied) {
            now.take(tagSet, bytes, isInScope, clocks.nanos());
        }
        if (bytes < ONE_BYTE) {
            return own;
        }
        Bounds bounds =
                new Bounds(
                        now.limits, tagSet, own.bound(), bytes, landed, window, clocks.nanos());
        Throttle all = isInScope ? now.all : null;
        Throttle user = now.users.get(tagSet.user());
        double bound =
                denied ? bounds.denied(all, user) : bounds.under(all, now.factors, user);
        if (bound >= own.bound()) {
            account.bound(null);
            return own;
        }
        Quota upperBound = Quota.upperBound(bound);
        account.bound(upperBound);
        longestPauseMs.accumulateAndGet(Math.round(bounds.pauseMs(upperBound)), Math::max);
        return upperBound;
    }

    /** Whether the factor of anybody is 0. */
    public boolean stopsAnybody() {
        return state.isStopping;
    }

    /** Whether the factor of a client, by its tags, is 0 for a request that is in scope or not. */
    public boolean stops(String user, String clientId, boolean isInScope) {
        return state.stops(user, clientId, isInScope);
    }

    /** Whose requests the throttle of all is for, or its ramp. */
    public Scope scope() {
        return state.scope;
    }

    /** The clients in scope, and the bytes that each has landed since a scope is in force. */
    public String clientsInScope() {
        return state.scope.isAll() ? "" : inScope.toString();
    }

    /** A request was authorized; called while {@link #scope} is not all. */
    public void noteScope(KafkaPrincipal principal, String clientId, boolean isInScope) {
        written.note(principal, clientId, isInScope);
    }

    /** Whether a volume is below the stop line. */
    public boolean admitsNobody() {
        return state.factors.admitsNobody();
    }

    /**
     * Whether a new connection's request may land, by the share of its tag set in the leak budget;
     * the share is reserved for it then.
     *
     * @param tagSet null for a client that never had one.
     * @param user by the tag, whose factor is 0.
     * @param isInScope whether the factor for all is for the request.
     */
    public boolean admits(TagSet tagSet, String user, boolean isInScope) {
        ActiveThrottles now = state;
        long nanos = clocks.nanos();
        Throttle own = now.users.get(user);
        boolean all = isInScope && now.all.mode() == Mode.THROTTLED;
        if (all && !now.all.reserve(tagSet, now.limits, now.factors.leak(), nanos)) {
            return false;
        }
        if (own == null
                || own.mode() != Mode.THROTTLED
                || own.reserve(tagSet, now.limits, Leak.WHOLE, nanos)) {
            return true;
        }
        if (all) {
            now.all.cancel(tagSet);
        }
        return false;
    }

    /** An error that neither Kafka nor a client is to see: their own quotas are in force. */
    public void failed(Throwable error) {
        faults.found(Faults.Kind.ERROR, error.toString());
    }

    /** What the guards found, the canary's verdict of now too. */
    public Faults faults() {
        Boolean asked = canary.isAsked();
        if (asked != null && asked) {
            faults.gone(Faults.Kind.NOT_ASKED);
        } else if (asked != null) {
            faults.found(Faults.Kind.NOT_ASKED, canary.toString());
        }
        return faults;
    }

    /**
     * The limit of a tag set outside a request: its own. After an operator changed a quota Kafka
     * walks over all rates, compares this with {@link #quota}, and where they differ sets a plain
     * limit, which would fit no sum but the last. So {@link #quota} returns the tag set's own for the
     * comparison that follows.
     *
     * @return bytes per second; null for none.
     */
    public Double limit(String user, String clientId) {
        if (!state.isFree) {
            TagSet tagSet = tagSets.find(user, clientId);
            if (tagSet != null) {
                tagSet.compare();
            }
        }
        return limits.of(user, clientId);
    }

    /** The users, sanitised, that have a throttle of their own, or its ramp. */
    public Set<String> throttledUsers() {
        return state.users.entrySet().stream()
                .filter(user -> user.getValue().mode() != Mode.FREE)
                .map(Map.Entry::getKey)
                .collect(Collectors.toUnmodifiableSet());
    }

    /** For the metrics. */
    public Figures figures() {
        ActiveThrottles now = state;
        long nanos = clocks.nanos();
        int[] throttled = {0};
        if (!now.isFree) {
            tagSets.forEach(null, tagSet -> {
                TagSet.Account account = tagSet.account(now.epoch(tagSet.user()));
                throttled[0] += account != null && account.bound() != null ? 1 : 0;
            });
        }
        Mode mode = now.all.mode();
        return new Figures(
                now.factors,
                mode,
                throttled[0],
                longestPauseMs.get(),
                mode == Mode.THROTTLED ? (long) now.all.pacer().aheadMs(nanos) : 0,
                mode == Mode.THROTTLED && now.factors.leak().isEmergency());
    }

    /** The figures behind the metrics. */
    public static final class Figures {
        public final Factors factors;
        public final Mode mode;
        public final int tagSetsThrottled;
        public final long longestPauseMs;
        public final long pauseInForceMs;
        public final boolean emergency;

        Figures(
                Factors factors,
                Mode mode,
                int tagSetsThrottled,
                long longestPauseMs,
                long pauseInForceMs,
                boolean emergency) {
            this.factors = factors;
            this.mode = mode;
            this.tagSetsThrottled = tagSetsThrottled;
            this.longestPauseMs = longestPauseMs;
            this.pauseInForceMs = pauseInForceMs;
            this.emergency = emergency;
        }
    }
}
