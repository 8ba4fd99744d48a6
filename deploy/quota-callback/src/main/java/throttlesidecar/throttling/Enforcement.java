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
 * <p>Kafka pauses a client for S / T - W, where S is the bytes in the rate's window of W seconds, and T
 * is the quota. So a quota of T = S / (W + P), computed when S has landed (see {@link TagSetConfig}),
 * results in a pause of P. This holds for any rate, quota, window and request size, and no value
 * overflows an integer. A {@link Pacer} computes P, and the {@link TagSet} counts the bytes that landed
 * since the last request.
 *
 * <p>Example: 11 MB in a window of 10.5 s and a pause of 4 s: T = 758,620 B/s, and Kafka computes
 * 11,000,000 / 758,620 - 10.5 = 4.0 s.
 *
 * <p>Request threads call {@link #beforeRecord} and {@link #quota}; while nothing is throttled, this
 * costs some volatile reads. One other thread calls {@link #apply}.
 */
public final class Enforcement {
    /** A smaller number of bytes is a rounding error, since S is computed as rate x window. */
    static final double ONE_BYTE = 0.5;

    /** How often a rate is read if the clock ticks meanwhile, which happens once in thousands of reads. */
    private static final int ATTEMPTS = 3;

    private static final long NEVER = Long.MIN_VALUE;
    private static final double MS_PER_S = 1000.0;
    private static final long NANOS_PER_MS = 1_000_000;

    private final TagSets tagSets;
    private final OwnLimit quotas;
    private final Supplier<Settings> settings;
    private final Clocks clocks;
    private final AtomicLong longestPauseMs = new AtomicLong();
    private final Faults faults = new Faults();
    private final Canary canary = new Canary();
    private final ScopedRequests scopedRequests = new ScopedRequests();
    private final BudgetRequests budgetRequests = new BudgetRequests();
    private final LargestClients clientsInScope = new LargestClients(500, 50);
    private final ThreadLocal<Charged> charged = ThreadLocal.withInitial(Charged::new);

    private volatile ActiveThrottles state;
    private long epochs;

    /** What the wall clock was ahead of the steady one when it was last looked at, ms. */
    private long aheadMs;

    /** The furthest time of the wall clock before it was set back; long ago if it never was. */
    private long setBackFromMs = Long.MIN_VALUE / 2;

    /** At first, nothing is throttled. */
    public Enforcement(TagSets tagSets, OwnLimit quotas, Supplier<Settings> settings, Clocks clocks) {
        this.tagSets = tagSets;
        this.quotas = quotas;
        this.settings = settings;
        this.clocks = clocks;
        this.state = ActiveThrottles.none(Factors.DISABLED, settings.get(), clocks.nanos());
        this.aheadMs = clocks.nowMs() - clocks.nanos() / NANOS_PER_MS;
    }

    /**
     * Notes whether the wall clock was set back since the last call, by the thread of {@link #apply}.
     *
     * <p>Until it has caught up, Kafka's windows do not end, and its rates only grow.
     */
    public void noteClock() {
        long steadyMs = clocks.nanos() / NANOS_PER_MS;
        long nowAheadMs = clocks.nowMs() - steadyMs;
        if (nowAheadMs < aheadMs - (long) MS_PER_S) {
            setBackFromMs = Math.max(setBackFromMs, aheadMs + steadyMs);
        }
        aheadMs = nowAheadMs;
    }

    /** Applies factors. One thread calls it: at each change, and during a throttle once a second. */
    public void apply(Factors factors) {
        Settings now = settings.get();
        long nanos = clocks.nanos();
        noteClock();
        ActiveThrottles old = state;
        // Switched off, throttles end without a ramp. If the callback is soon switched on again, they are
        // recent, so that their influence on the rates is known.
        long releaseMs = factors.source == Factors.Source.DISABLED ? 0 : now.releaseMs();
        long sinceSetBackMs = clocks.nowMs() - setBackFromMs;
        RatesBefore rates = new RatesBefore(tagSets, old, now, nanos, sinceSetBackMs, this::failed);
        Supplier<Throttle.Before> whole = () -> rates.measure(null);
        Throttle all = next(old.all, factors.global, releaseMs, nanos, whole);
        Map<String, Throttle> users = new HashMap<>();
        old.users.forEach((user, throttle) -> {
            Throttle next = next(throttle, 1.0, releaseMs, nanos, () -> rates.measure(user));
            if (next.isRecent(nanos)) {
                users.put(user, next);
            }
        });
        factors.users.forEach((name, factor) -> {
            String user = Sanitized.of(name);
            Throttle before = old.users.getOrDefault(user, Throttle.free(nanos));
            users.put(user, next(before, factor, releaseMs, nanos, () -> rates.measure(user)));
        });
        Map<String, Throttle> budgets = budgets(old, factors, nanos, rates);
        // Clients that were not throttled have no ramp after the throttle.
        // An equal scope is the same object, by which requests are noted.
        boolean isSame = factors.global >= 1.0 || factors.scope.equals(old.scope);
        Scope scope = isSame ? old.scope : factors.scope;
        ActiveThrottles next = new ActiveThrottles(
                factors, all, users, budgets, old.budgetsEpoch(epochs + 1), now, scope);
        epochs += old.areBudgetsFree && !next.areBudgetsFree ? 1 : 0;
        if (old.scope.isAll() && !next.scope.isAll()) {
            scopedRequests.begin(nanos);
            clientsInScope.clear();
        }
        state = next;
        if (next.scope.isAll()) {
            scopedRequests.end();
        }
        if (next.areBudgetsFree) {
            budgetRequests.clear();
        }
    }

    /** The throttles of owners. They have no ramp, since nobody knows their topics after the release. */
    private Map<String, Throttle> budgets(
            ActiveThrottles old, Factors factors, long nanos, RatesBefore rates) {
        Map<String, Throttle> budgets = new HashMap<>();
        old.budgets.forEach((owner, throttle) -> {
            Throttle next = throttle.release(epochs + 1, nanos, 0);
            if (next.isRecent(nanos)) {
                budgets.put(owner, next);
            }
        });
        factors.budgets.factors.forEach((owner, factor) -> {
            Throttle before = old.budgets.getOrDefault(owner, Throttle.free(nanos));
            budgets.put(owner, next(before, factor, 0, nanos, rates::measureOwner));
        });
        return budgets;
    }

    private Throttle next(
            Throttle old, double factor, long releaseMs, long nanos,
            Supplier<Throttle.Before> before) {
        if (old.begins(factor)) {
            canary.reset();
            return old.begin(factor, before.get(), ++epochs, nanos);
        }
        if (factor < 1.0) {
            return factor == old.factor ? old : old.change(factor, ++epochs, nanos);
        }
        Throttle next = old.release(epochs + 1, nanos, releaseMs);
        epochs += next == old ? 0 : 1;
        return next;
    }

    /** The request that a thread charges, for which Kafka asks for the quota next. */
    private static final class Charged {
        /** When the request came, by the wall clock, at or after Kafka's own time; NEVER if none came. */
        private long recordedMs = NEVER;

        /** Whether the request was denied as a whole. */
        private boolean isDenied;

        private boolean isInScope = true;

        /** The request's principal while a scope applies, else null. */
        private KafkaPrincipal principal;

        private String clientId;

        /** The owner past its storage budget that the request writes to; null for none. */
        private String owner;
    }

    /** A tag set has its first request, from which on bytes count. */
    void appeared(TagSet tagSet) {
        tagSet.sinceNanos = clocks.nanos();
        ActiveThrottles now = state;
        if (!now.isFree) {
            tagSet.begin(now.epoch(tagSet.user), 0.0);
        }
    }

    /** As the other method, for a request that is in scope. */
    public void beforeRecord(TagSet tagSet) {
        beforeRecord(tagSet, null, null);
    }

    /**
     * Prepares the quota of a request, before Kafka records the request.
     *
     * @param tagSet null before its first request.
     * @param principal the request's own object; null if the request is in scope.
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
        request.recordedMs = clocks.nowMs();
        request.isDenied = DeniedRequest.isDue();
        request.principal = now.scope.isAll() ? null : principal;
        request.clientId = clientId;
        request.owner = now.areBudgetsFree || principal == null
                ? null
                : budgetRequests.owner(principal, clientId);
        request.isInScope = request.principal == null
                || scopedRequests.isInScope(principal, clientId, clocks.nanos());
        if (tagSet == null ? now.all.mode == Mode.FREE : now.isFree(tagSet)) {
            return;
        }
        canary.request();
        KafkaMetric metric = tagSet == null ? null : tagSet.metric;
        if (metric == null) {
            return;
        }
        long epoch = now.epoch(tagSet.user);
        TagSet.Account account = tagSet.account(epoch);
        // Read before the landed bytes, which do not include bytes that are counted meanwhile.
        long counted = account == null ? 0 : account.counted();
        double landed;
        try {
            landed = landedUnlocked(metric);
        } catch (ConcurrentModificationException raced) {
            // Kafka is making the rate's first samples, so no bytes can have left its window yet.
            return;
        }
        if (account == null) {
            tagSet.begin(epoch, landed);
        } else {
            account.expire(counted, landed);
        }
    }

    /** S, read without the sensor's monitor while other threads may record; infinite if that fails. */
    private double landedUnlocked(KafkaMetric metric) {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            // Taken before the rate: Kafka purges samples that have left the window under its lock, so
            // that windowSize(), which takes no lock, finds nothing to purge.
            long nowMs = clocks.nowMs();
            double rate = (Double) metric.metricValue();
            Rate measurable = (Rate) metric.measurable();
            double window = measurable.windowSize(metric.config(), nowMs) / MS_PER_S;
            // Valid only within one millisecond: in the next, the window may be a second shorter.
            if (clocks.nowMs() == nowMs) {
                return rate * window;
            }
        }
        return Double.POSITIVE_INFINITY;
    }

    /** The quota of a tag set. Kafka asks for it under the monitor of the tag set's sensor. */
    Quota quota(TagSet tagSet, TagSetConfig config) {
        Quota own = tagSet.own(quotas);
        ActiveThrottles now = state;
        if (now.isFree(tagSet)) {
            return own;
        }
        Charged request = charged.get();
        long nowMs = request.recordedMs;
        KafkaMetric metric = tagSet.metric;
        TagSet.Account account = tagSet.account(now.epoch(tagSet.user));
        // After an operator changed a quota, Kafka asks without a request. It compares the answer with
        // the callback's limit. If they differ, it sets a plain limit, which would be wrong for later
        // requests.
        if (nowMs == NEVER || metric == null || account == null) {
            return own;
        }
        canary.quota();
        request.recordedMs = NEVER;
        // Uses the request's own time: by the current time, a window that ended while this thread
        // waited for the sensor would shorten the pause by a second.
        Rate rate = (Rate) metric.measurable();
        double observed = rate.measure(config, nowMs);
        double window = rate.windowSize(config, nowMs) / MS_PER_S;
        double landed = observed * window;
        double bytes = account.count(landed, window);
        if (request.isInScope && request.principal != null && bytes > 0.0) {
            clientsInScope.add(request.principal.getName(), request.clientId, Math.round(bytes));
        }
        if (!request.isDenied) {
            now.take(tagSet, bytes, request.isInScope, clocks.nanos());
        }
        if (bytes < ONE_BYTE) {
            return own;
        }
        LandedRequest made = new LandedRequest(
                now.settings, tagSet, own.bound(), bytes, landed, window, clocks.nanos());
        Throttle all = request.isInScope ? now.all : null;
        Throttle user = now.users.get(tagSet.user);
        Throttle budget = request.owner == null ? null : now.budgets.get(request.owner);
        if (budget != null) {
            tagSet.owner = request.owner;
        }
        double bound = request.isDenied
                ? made.quotaIfDenied(all, user, budget)
                : made.quota(all, now.factors, user, budget);
        account.throttles = bound < own.bound();
        if (bound >= own.bound()) {
            return own;
        }
        longestPauseMs.accumulateAndGet(Math.round(made.pauseMs(bound)), Math::max);
        return Quota.upperBound(bound);
    }

    /** The throttles that apply now. */
    public ActiveThrottles throttles() {
        return state;
    }

    /** The clients in scope, with the bytes that each has landed since the scope began to apply. */
    public String clientsInScope() {
        return state.scope.isAll() ? "" : clientsInScope.toString();
    }

    /** Notes a request that was authorized while a scope applies, which is not all. */
    public void noteScope(KafkaPrincipal principal, String clientId, Scope scope, boolean isInScope) {
        scopedRequests.note(principal, clientId, scope, isInScope);
    }

    /** Notes a request that was authorized and writes to the topics of an owner past its budget. */
    public void noteOwner(KafkaPrincipal principal, String clientId, String owner) {
        budgetRequests.note(principal, clientId, owner);
    }

    /** As {@link ActiveThrottles#admits}, now. */
    public boolean admits(TagSet tagSet, String user, boolean isInScope) {
        return state.admits(tagSet, user, isInScope, clocks.nanos());
    }

    /** Notes an error that Kafka and clients must not see; the clients' own quotas apply. */
    public void failed(Throwable error) {
        faults.found(Faults.Kind.ERROR, error.toString());
    }

    /** The faults that were found, with the canary's. */
    public Faults faults() {
        canary.check(faults);
        return faults;
    }

    /** A tag set's limit outside a request: its own quota, in bytes per second; null for none. */
    public Double limit(String user, String clientId) {
        return quotas.of(user, clientId);
    }

    /** The users, sanitised, that have a throttle of their own, or its ramp. */
    public Set<String> throttledUsers() {
        return state.users.entrySet().stream()
                .filter(user -> user.getValue().mode != Mode.FREE)
                .map(Map.Entry::getKey)
                .collect(Collectors.toUnmodifiableSet());
    }

    public Figures figures() {
        return new Figures(state, tagSets, longestPauseMs.get(), clocks.nanos());
    }

    public static final class Figures {
        public final Factors factors;
        public final Mode mode;
        public final int tagSetsThrottled;
        public final long longestPauseMs;
        public final long pauseInForceMs;
        public final boolean emergency;

        Figures(ActiveThrottles now, TagSets tagSets, long longestPauseMs, long nanos) {
            int[] throttled = {0};
            if (!now.isFree) {
                tagSets.forEach(null, tagSet -> {
                    TagSet.Account account = tagSet.account(now.epoch(tagSet.user));
                    throttled[0] += account != null && account.throttles ? 1 : 0;
                });
            }
            boolean stops = ActiveThrottles.stops(now.all);
            this.factors = now.factors;
            this.mode = now.all.mode;
            this.tagSetsThrottled = throttled[0];
            this.longestPauseMs = longestPauseMs;
            this.pauseInForceMs = stops ? (long) now.all.pacer.aheadMs(nanos) : 0;
            this.emergency = stops && now.factors.leak.isEmergency();
        }
    }
}
