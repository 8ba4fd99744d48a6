package throttlesidecar.throttling;

import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.Throttle.Mode;

/**
 * A request that has landed. Computes the quota that makes Kafka pause its client: the client's own
 * quota, or a smaller one.
 *
 * <p>A request is in three groups at most: all clients of the broker, those of its user, and those that
 * write to an owner past its storage budget. The strictest group counts.
 */
final class LandedRequest {
    /** How far a client may be ahead of its ramp, ms, since requests come in bursts. */
    private static final double RAMP_TOLERANCE_MS = 20.0;

    private static final double MS_PER_S = 1000.0;

    private final Settings settings;
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
     * @param bytes the request's size, with all bytes that landed at the same time.
     * @param landed the bytes in the rate's window, with the request's.
     * @param windowS the rate's window.
     */
    LandedRequest(
            Settings settings, TagSet tagSet, double own, double bytes, double landed,
            double windowS, long nanos) {
        this.settings = settings;
        this.tagSet = tagSet;
        this.own = own;
        this.bytes = bytes;
        this.landed = landed;
        this.windowS = windowS;
        this.nanos = nanos;
    }

    /**
     * The quota that makes Kafka pause the client as the throttles need it. Call it once for each
     * request, since pacers count.
     *
     * @param all null if the request is out of scope.
     * @param user null if the user has no throttle of its own. Such a throttle does not protect a disk, so
     *     no disk makes its leak smaller.
     * @param budget null if the request writes to no owner past its storage budget.
     * @return bytes per second; the tag set's own quota applies if it is smaller.
     */
    double quota(Throttle all, Factors factors, Throttle user, Throttle budget) {
        double bound = all == null ? own : under(all, factors.leak, factors.isSloped);
        if (user != null) {
            bound = Math.min(bound, under(user, Leak.WHOLE, false));
        }
        if (budget != null) {
            bound = Math.min(bound, under(budget, Leak.WHOLE, true));
        }
        return ramps(all) || ramps(user) ? Math.min(bound, pausing(rampPauseMs(all, user))) : bound;
    }

    /** The quota if no bytes of the request land: its client pauses and uses up no budget. */
    double quotaIfDenied(Throttle all, Throttle user, Throttle budget) {
        boolean stops = ActiveThrottles.stops(all) || ActiveThrottles.stops(user)
                || ActiveThrottles.stops(budget);
        return stops ? Math.min(own, pausing(settings.pauseMaxMs)) : own;
    }

    private static boolean ramps(Throttle throttle) {
        return throttle != null && throttle.mode == Mode.RAMP;
    }

    private double under(Throttle throttle, Leak leak, boolean isSloped) {
        switch (throttle.mode) {
            case THROTTLED:
                double budget = throttle.budget(settings, leak);
                long cap = leak.pauseMaxMs(settings);
                return pausing(throttle.pacer.pauseMs(bytes, budget, cap, 0.0, nanos));
            case SCALED:
                double limit = throttle.factor * unthrottled(throttle, isSloped);
                return Math.max(limit, pausing(settings.pauseMaxMs));
            default:
                return own;
        }
    }

    /** The rate that a factor multiplies, in bytes per second. */
    private double unthrottled(Throttle throttle, boolean isSloped) {
        boolean hasQuota = own < Long.MAX_VALUE;
        if (hasQuota && !isSloped) {
            return own;
        }
        double before = tagSet.before > 0.0 ? tagSet.before : throttle.fairShare();
        return Math.min(own, before > 0.0 ? before : Ramp.FLOOR);
    }

    /** The quota T for a pause: Kafka's pause is S / T - W. */
    private double pausing(double pauseMs) {
        return pauseMs == 0.0 ? own : landed / (windowS + pauseMs / MS_PER_S);
    }

    /** Both groups may ramp at the same time, but the client has one pace: that of the later release. */
    private double rampPauseMs(Throttle all, Throttle user) {
        boolean isOfAll = !ramps(user) || ramps(all) && all.epoch > user.epoch;
        Throttle last = isOfAll ? all : user;
        double pace = Math.min(own, last.pace(tagSet, settings.rampMs, nanos));
        // This runs under the monitor of the tag set's sensor, so there is only one pacer.
        if (tagSet.pacer == null) {
            tagSet.pacer = new Pacer(nanos);
        }
        return tagSet.pacer.pauseMs(bytes, pace, settings.pauseMaxMs, RAMP_TOLERANCE_MS, nanos);
    }

    /** The pause that a quota makes. */
    double pauseMs(double quota) {
        return (landed / quota - windowS) * MS_PER_S;
    }
}
