package throttlesidecar.throttling;

import java.util.Map;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.Throttle.Mode;

/** The throttles in force, and all else that a request reads of them, in one volatile. */
final class ActiveThrottles {
    final Factors factors;
    final Throttle all;
    final Map<String, Throttle> users;
    final Settings limits;
    final boolean isFree;
    final boolean isStopping;

    /** Whose requests the throttle of all is for, or its ramp. */
    final Scope scope;

    ActiveThrottles(
            Factors factors,
            Throttle all,
            Map<String, Throttle> users,
            Settings limits,
            Scope scope) {
        this.scope = all.mode() == Mode.FREE ? Scope.ALL : scope;
        this.factors = factors;
        this.all = all;
        this.users = users;
        this.limits = limits;
        this.isFree =
                all.mode() == Mode.FREE
                        && users.values().stream().allMatch(user -> user.mode() == Mode.FREE);
        this.isStopping =
                all.mode() == Mode.THROTTLED
                        || users.values().stream().anyMatch(user -> user.mode() == Mode.THROTTLED);
    }

    /** Whether the factor of a client, by its tags, is 0 for a request that is in scope or not. */
    boolean stops(String user, String clientId, boolean isInScope) {
        if (!isStopping || limits.excludes(user, clientId)) {
            return false;
        }
        Throttle own = users.get(user);
        return isInScope && all.mode() == Mode.THROTTLED || own != null && own.mode() == Mode.THROTTLED;
    }

    /** Takes what has landed from the leak budgets of the throttles that stop a tag set. */
    void take(TagSet tagSet, double bytes, boolean isInScope, long nanos) {
        if (!isStopping || bytes < Enforcement.ONE_BYTE) {
            return;
        }
        if (isInScope && all.mode() == Mode.THROTTLED) {
            all.take(tagSet, bytes, limits, factors.leak(), nanos);
        }
        Throttle own = users.get(tagSet.user());
        if (own != null && own.mode() == Mode.THROTTLED) {
            own.take(tagSet, bytes, limits, Leak.WHOLE, nanos);
        }
    }

    /** Whether a tag set's clients are not throttled. */
    boolean isFree(TagSet tagSet) {
        return isFree
                || tagSet.isExcluded(limits)
                || isFree(all) && isFree(users.get(tagSet.user()));
    }

    private static boolean isFree(Throttle throttle) {
        return throttle == null || throttle.mode() == Mode.FREE;
    }

    /**
     * The rate of a tag set before a throttle that begins now: the measured one, unless
     * another throttle shaped it.
     */
    double before(TagSet tagSet, double measured, long nanos) {
        Throttle user = users.get(tagSet.user());
        double last = tagSet.before();
        boolean shaped = !isFree(all) || !isFree(user);
        if (shaped && last > 0.0) {
            return last;
        }
        boolean recent = all.isRecent(nanos) || user != null && user.isRecent(nanos);
        return recent ? Math.max(last, measured) : measured;
    }

    long epoch(String user) {
        Throttle own = users.isEmpty() ? null : users.get(user);
        return own == null ? all.epoch() : Math.max(all.epoch(), own.epoch());
    }
}
