package throttlesidecar;

import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import throttlesidecar.Throttle.Mode;

/**
 * Turns factors into the quotas that Kafka throttles by.
 *
 * <p>Kafka pauses a client by S / T - W: S bytes in the rate's window of W seconds, quota T. So a
 * pause of P is had by T = S / (W + P), given when S has landed (see {@link TagSetConfig}); it is
 * the same at any rate, quota, window and request size, and small enough for any integer. How long
 * P has to be is a {@link Pacer}'s question, and what has landed since the last answer the
 * {@link TagSet}'s.
 *
 * <p>Example: 11 MB in a window of 10.5 s and a pause of 4 s: T = 758,620 B/s, and Kafka computes
 * 11,000,000 / 758,620 - 10.5 = 4.0 s.
 *
 * <p>Request threads call {@link #beforeRecord} and {@link #quota}; while nothing is throttled that
 * costs some volatile reads. One other thread calls {@link #apply}.
 */
final class Enforcement {
    /** What can be told apart from rounding: S is had as rate x window. */
    private static final double ONE_BYTE = 0.5;

    /** How far a client may be ahead of its ramp, ms: requests come in lumps. */
    private static final double RAMP_TOLERANCE_MS = 100.0;

    /** Where a client begins after a release that was not there before, bytes per second. */
    private static final double RAMP_FLOOR = 1_000_000.0;

    private static final double MS_PER_S = 1000.0;

    private final TagSets tagSets;
    private final OwnLimit limits;
    private final Supplier<Limits> settings;
    private final Moments moments;
    private final AtomicLong longestPauseMs = new AtomicLong();
    private volatile State state;
    private long epochs;

    /**
     * Nothing is throttled at first.
     *
     * @param tagSets whose quotas are given.
     * @param limits what the tag sets were given by operators.
     * @param settings in force; may change.
     * @param moments the clocks.
     */
    Enforcement(TagSets tagSets, OwnLimit limits, Supplier<Limits> settings, Moments moments) {
        this.tagSets = tagSets;
        this.limits = limits;
        this.settings = settings;
        this.moments = moments;
        this.state =
                new State(Factors.DISABLED, Throttle.free(moments.nanos()), Map.of(), settings.get());
    }

    /**
     * Makes factors count from now on. By one thread at a time: at each change, and once a second
     * while something is throttled.
     */
    void apply(Factors factors) {
        Limits now = settings.get();
        long nanos = moments.nanos();
        if (factors.source() == Factors.Source.DISABLED) {
            state = new State(factors, Throttle.free(nanos), Map.of(), now);
            return;
        }
        State old = state;
        Throttle all = next(old.all, null, factors.global(), factors, now, nanos);
        Map<String, Throttle> users = new HashMap<>();
        old.users.forEach((user, throttle) -> {
            Throttle next = next(throttle, user, 1.0, factors, now, nanos);
            if (next.mode() != Mode.FREE || next.isRecent(nanos)) {
                users.put(user, next);
            }
        });
        factors.users().forEach((name, factor) -> {
            String user = Sanitized.of(name);
            Throttle before = old.users.getOrDefault(user, Throttle.free(nanos));
            users.put(user, next(before, user, factor, factors, now, nanos));
        });
        state = new State(factors, all, users, now);
    }

    private Throttle next(
            Throttle old, String user, double factor, Factors factors, Limits now, long nanos) {
        if (old.begins(factor)) {
            return old.begin(factor, measure(user, old.isRecent(nanos), now), ++epochs, nanos);
        }
        if (factor < 1.0) {
            Throttle next = factor == old.factor() ? old : old.change(factor, ++epochs, nanos);
            return next.watch(
                    factors.secondsToFull(), now.emergencyHorizonMs(), now.pauseMaxMs(), nanos);
        }
        Throttle next = old.release(epochs + 1, nanos, now.rampMs());
        epochs += next == old ? 0 : 1;
        return next;
    }

    /** Notes each tag set's rate; a walk over our own, on the thread that applies. */
    private Throttle.Before measure(String user, boolean recent, Limits now) {
        double[] sum = {0.0};
        int[] sets = {0};
        tagSets.forEach(tagSet -> {
            KafkaMetric metric = tagSet.metric();
            boolean counts = user == null ? !now.excludes(tagSet.user()) : user.equals(tagSet.user());
            if (metric == null || !counts) {
                return;
            }
            double rate = (Double) metric.metricValue();
            double before = recent ? Math.max(rate, tagSet.before()) : rate;
            tagSet.before(before);
            sum[0] += before;
            sets[0] += before > 0.0 ? 1 : 0;
        });
        return new Throttle.Before(sum[0], sets[0]);
    }

    /** A tag set has its first request, whose bytes are the first that count. */
    void appeared(TagSet tagSet) {
        State now = state;
        if (!now.isFree) {
            tagSet.begin(now.epoch(tagSet.user()), 0.0);
        }
    }

    /** On the request path, before a request of the tag set is recorded; null is harmless. */
    void beforeRecord(TagSet tagSet) {
        if (tagSet == null) {
            return;
        }
        tagSets.install(tagSet);
        State now = state;
        if (now.isFree || now.limits.excludes(tagSet.user())) {
            return;
        }
        KafkaMetric metric = tagSet.metric();
        if (metric == null) {
            return;
        }
        double landed;
        try {
            landed = landedUnlocked(metric);
        } catch (ConcurrentModificationException raced) {
            // The rate's first samples are being made: nothing can have left its window yet.
            return;
        }
        if (!tagSet.begin(now.epoch(tagSet.user()), landed)) {
            tagSet.expire(landed);
        }
    }

    /** S without the sensor's monitor, while others may record. */
    private double landedUnlocked(KafkaMetric metric) {
        // Taken before the rate: what has left the window by then was purged under Kafka's lock,
        // so that asking for the window's size, which takes none, finds nothing to purge.
        long nowMs = moments.nowMs();
        double rate = (Double) metric.metricValue();
        return rate * ((Rate) metric.measurable()).windowSize(metric.config(), nowMs) / MS_PER_S;
    }

    /** The quota of a tag set, asked for by Kafka under the monitor of the tag set's sensor. */
    Quota quota(TagSet tagSet, TagSetConfig config) {
        Quota own = tagSet.own(limits);
        State now = state;
        if (now.isFree || now.limits.excludes(tagSet.user())) {
            return own;
        }
        KafkaMetric metric = tagSet.metric();
        if (metric == null || !tagSet.isIn(now.epoch(tagSet.user()))) {
            return own;
        }
        long nowMs = moments.nowMs();
        Rate rate = (Rate) metric.measurable();
        double observed = rate.measure(config, nowMs);
        double window = rate.windowSize(config, nowMs) / MS_PER_S;
        double landed = observed * window;
        double bytes = tagSet.count(landed);
        Quota last = tagSet.lastBound();
        if (bytes < ONE_BYTE) {
            // Nobody's request: Kafka compares quotas after an operator changed one.
            return last == null ? own : last;
        }
        double bound = bound(tagSet, now, own.bound(), bytes, landed, window);
        Quota given = bound < own.bound() ? Quota.upperBound(bound) : own;
        tagSet.lastBound(given);
        return given;
    }

    private double bound(
            TagSet tagSet, State now, double own, double bytes, double landed, double window) {
        Throttle user = now.users.get(tagSet.user());
        long nanos = moments.nanos();
        double bound = boundBy(now.all, tagSet, now.limits, own, bytes, landed, window, nanos);
        if (user != null) {
            double other = boundBy(user, tagSet, now.limits, own, bytes, landed, window, nanos);
            bound = Math.min(bound, other);
        }
        return bound;
    }

    private double boundBy(
            Throttle throttle,
            TagSet tagSet,
            Limits now,
            double own,
            double bytes,
            double landed,
            double window,
            long nanos) {
        switch (throttle.mode()) {
            case HELD:
                double budget = throttle.budget(now.leakRatio(), now.leakBytesPerSecond());
                double cap = Math.min(
                        now.emergencyPauseMaxMs(), now.pauseMaxMs() / throttle.emergencyScale());
                double held = throttle.pacer().pauseMs(bytes, budget, cap, 0.0, nanos);
                return pausing(held, landed, window);
            case SCALED:
                double limit = throttle.factor() * (own < Long.MAX_VALUE ? own : before(throttle, tagSet));
                double least = landed / (window + now.pauseMaxMs() / MS_PER_S);
                return Math.max(limit, least);
            case RAMP:
                double share = throttle.rampedShare(nanos, now.rampMs());
                if (share >= 1.0) {
                    return own;
                }
                double start = Math.min(own, Math.max(before(throttle, tagSet), RAMP_FLOOR));
                double end = own < Long.MAX_VALUE ? own : start * Throttle.RAMP_HEADROOM;
                double pace = start + (end - start) * share;
                double pause = rampPacer(tagSet, nanos)
                        .pauseMs(bytes, pace, now.pauseMaxMs(), RAMP_TOLERANCE_MS, nanos);
                return pause == 0.0 ? own : pausing(pause, landed, window);
            default:
                return own;
        }
    }

    private double pausing(double pauseMs, double landed, double window) {
        longestPauseMs.accumulateAndGet((long) Math.ceil(pauseMs), Math::max);
        return landed / (window + pauseMs / MS_PER_S);
    }

    private static double before(Throttle throttle, TagSet tagSet) {
        double before = tagSet.before();
        return before > 0.0 ? before : throttle.fairShare();
    }

    /** Under the monitor of the tag set's sensor, so that there is only ever one. */
    private static Pacer rampPacer(TagSet tagSet, long nanos) {
        Pacer pacer = tagSet.pacer();
        if (pacer == null) {
            pacer = new Pacer(nanos);
            tagSet.pacer(pacer);
        }
        return pacer;
    }

    /**
     * What Kafka is to take for the limit of a tag set outside a request.
     *
     * @return bytes per second; null for none.
     */
    Double limit(String user, String clientId) {
        TagSet tagSet = tagSets.find(user, clientId);
        State now = state;
        if (tagSet != null && !now.isFree && tagSet.isIn(now.epoch(user))) {
            Quota last = tagSet.lastBound();
            if (last != null && !now.limits.excludes(user)) {
                return last.bound();
            }
        }
        return limits.of(user, clientId);
    }

    /** For the metrics. */
    Figures figures() {
        State now = state;
        long nanos = moments.nanos();
        int[] held = {0};
        if (!now.isFree) {
            tagSets.forEach(tagSet -> {
                boolean inForce = tagSet.isIn(now.epoch(tagSet.user())) && tagSet.lastBound() != null;
                held[0] += inForce ? 1 : 0;
            });
        }
        Mode mode = now.all.mode();
        return new Figures(
                now.factors,
                mode,
                held[0],
                longestPauseMs.get(),
                mode == Mode.HELD ? (long) now.all.pacer().aheadMs(nanos) : 0,
                now.isEmergency());
    }

    /** All that a request has to look at, in one volatile. */
    private static final class State {
        private final Factors factors;
        private final Throttle all;
        private final Map<String, Throttle> users;
        private final Limits limits;
        private final boolean isFree;

        State(Factors factors, Throttle all, Map<String, Throttle> users, Limits limits) {
            this.factors = factors;
            this.all = all;
            this.users = users;
            this.limits = limits;
            this.isFree =
                    all.mode() == Mode.FREE
                            && users.values().stream().allMatch(user -> user.mode() == Mode.FREE);
        }

        long epoch(String user) {
            Throttle own = users.isEmpty() ? null : users.get(user);
            return own == null ? all.epoch() : Math.max(all.epoch(), own.epoch());
        }

        boolean isEmergency() {
            return all.isEmergency() || users.values().stream().anyMatch(Throttle::isEmergency);
        }
    }

    /** The settings that enforcing needs. */
    interface Limits {
        /** The longest pause, ms. */
        long pauseMaxMs();

        /** The longest pause in an emergency, ms. */
        long emergencyPauseMaxMs();

        /** Within which no volume may be full, ms. */
        long emergencyHorizonMs();

        /** What may leak, of the rate before the throttle. */
        double leakRatio();

        /** What may leak, absolutely, bytes per second; NaN: the ratio counts. */
        double leakBytesPerSecond();

        /** From a release to full speed, ms; 0 for at once. */
        long rampMs();

        /** Whether a user, by the tag, is never held. */
        boolean excludes(String user);
    }

    /** What the metrics tell. */
    static final class Figures {
        final Factors factors;
        final Mode mode;
        final int tagSetsHeld;
        final long longestPauseMs;
        final long pauseInForceMs;
        final boolean emergency;

        Figures(
                Factors factors,
                Mode mode,
                int tagSetsHeld,
                long longestPauseMs,
                long pauseInForceMs,
                boolean emergency) {
            this.factors = factors;
            this.mode = mode;
            this.tagSetsHeld = tagSetsHeld;
            this.longestPauseMs = longestPauseMs;
            this.pauseInForceMs = pauseInForceMs;
            this.emergency = emergency;
        }
    }
}
