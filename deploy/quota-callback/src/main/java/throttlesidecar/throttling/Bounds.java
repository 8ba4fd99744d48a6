package throttlesidecar.throttling;

import org.apache.kafka.common.metrics.Quota;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.Throttle.Mode;

/**
 * The quota of a request that has landed: its client's, or a smaller one.
 *
 * <p>A client is in two groups at most, all of the broker's and those of its user; the stricter one
 * counts.
 */
final class Bounds {
    /** How far a client may be ahead of its ramp, ms: requests come in lumps. */
    private static final double RAMP_TOLERANCE_MS = 20.0;

    private static final double MS_PER_S = 1000.0;

    private final Settings limits;
    private final TagSet tagSet;
    private final double own;
    private final double bytes;
    private final double landed;
    private final double windowS;
    private final long nanos;

    /**
     * A request that has landed.
     *
     * @param own the tag set's quota, bytes per second.
     * @param bytes its size, and of whatever landed at the same time.
     * @param landed in the rate's window, it included, bytes.
     * @param windowS the rate's window, s.
     */
    Bounds(
            Settings limits,
            TagSet tagSet,
            double own,
            double bytes,
            double landed,
            double windowS,
            long nanos) {
        this.limits = limits;
        this.tagSet = tagSet;
        this.own = own;
        this.bytes = bytes;
        this.landed = landed;
        this.windowS = windowS;
        this.nanos = nanos;
    }

    /**
     * The quota that makes Kafka pause by the rules. Called once a request, since pacers count.
     *
     * @param all null when the request is out of its scope.
     * @param factors in force.
     * @param user null when the user has no throttle of its own, which is for what the user does: no
     *     disk makes its leak smaller.
     * @return bytes per second; where it is more than the tag set's own, that one counts.
     */
    double under(Throttle all, Factors factors, Throttle user) {
        double bound = all == null ? own : under(all, factors.leak(), factors.isSloped());
        if (user != null) {
            bound = Math.min(bound, under(user, Leak.WHOLE, false));
        }
        return ramps(all) || ramps(user) ? Math.min(bound, pausing(rampPauseMs(all, user))) : bound;
    }

    private static boolean ramps(Throttle throttle) {
        return throttle != null && throttle.mode() == Mode.RAMP;
    }

    /** The same for a request of which nothing lands: its client pauses, and uses up no budget. */
    double denied(Throttle all, Throttle user) {
        boolean stops =
                all != null && all.mode() == Mode.THROTTLED
                        || user != null && user.mode() == Mode.THROTTLED;
        return stops ? Math.min(own, pausing(limits.pauseMaxMs)) : own;
    }

    private double under(Throttle throttle, Leak leak, boolean isSloped) {
        switch (throttle.mode()) {
            case THROTTLED:
                double budget = throttle.budget(limits, leak);
                long cap = leak.pauseMaxMs(limits);
                return pausing(throttle.pacer().pauseMs(bytes, budget, cap, 0.0, nanos));
            case SCALED:
                double limit = throttle.factor() * unthrottled(throttle, isSloped);
                return Math.max(limit, pausing(limits.pauseMaxMs));
            default:
                return own;
        }
    }

    /** What a factor multiplies. */
    private double unthrottled(Throttle throttle, boolean isSloped) {
        if (hasQuota() && !isSloped) {
            return own;
        }
        double before = tagSet.before() > 0.0 ? tagSet.before() : throttle.fairShare();
        return Math.min(own, before > 0.0 ? before : Ramp.FLOOR);
    }

    /** Kafka's pause is S / T - W: so this is T for a pause. */
    private double pausing(double pauseMs) {
        return pauseMs == 0.0 ? own : landed / (windowS + pauseMs / MS_PER_S);
    }

    /** Its groups may ramp at the same time, but it has one pace: as of the later release. */
    private double rampPauseMs(Throttle all, Throttle user) {
        Throttle last = all;
        if (ramps(user)) {
            last = ramps(all) && all.epoch() > user.epoch() ? all : user;
        }
        return rampPacer()
                .pauseMs(bytes, pace(last), limits.pauseMaxMs, RAMP_TOLERANCE_MS, nanos);
    }

    private double pace(Throttle throttle) {
        Ramp ramp = throttle.ramp(nanos, limits.rampMs);
        return Math.min(own, ramp.pace(tagSet.before(), throttle.fairShare()));
    }

    private boolean hasQuota() {
        return own < Long.MAX_VALUE;
    }

    /** Under the monitor of the tag set's sensor, so that there is only ever one. */
    private Pacer rampPacer() {
        Pacer pacer = tagSet.pacer();
        if (pacer == null) {
            pacer = new Pacer(nanos);
            tagSet.pacer(pacer);
        }
        return pacer;
    }

    /** The pause that a quota makes, ms. */
    double pauseMs(Quota quota) {
        return (landed / quota.bound() - windowS) * MS_PER_S;
    }
}
