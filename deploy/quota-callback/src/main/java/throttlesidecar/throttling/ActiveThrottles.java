package throttlesidecar.throttling;

import java.util.Map;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.Throttle.Mode;

/** The throttles that apply, with everything that a request reads, so that one volatile field has it all. */
public final class ActiveThrottles {
    public final Factors factors;
    final Throttle all;
    final Map<String, Throttle> users;

    /** The throttles of owners past their storage budgets. */
    final Map<String, Throttle> budgets;

    final Settings settings;

    /** The requests that the throttle for all clients, or its ramp, applies to. */
    public final Scope scope;

    /** Whether no client is throttled. */
    final boolean isFree;

    /** Whether no owner is past its storage budget. */
    public final boolean areBudgetsFree;

    /** The epoch in which bytes are counted while an owner is past its budget. */
    private final long budgetsEpoch;

    /** Whether any client's factor is 0. */
    public final boolean isStopping;

    ActiveThrottles(
            Factors factors, Throttle all, Map<String, Throttle> users,
            Map<String, Throttle> budgets, long budgetsEpoch, Settings settings, Scope scope) {
        this.factors = factors;
        this.all = all;
        this.users = users;
        this.budgets = budgets;
        this.settings = settings;
        this.areBudgetsFree = budgets.values().stream().allMatch(ActiveThrottles::isFree);
        this.budgetsEpoch = areBudgetsFree ? 0 : budgetsEpoch;
        this.scope = isFree(all) ? Scope.ALL : scope;
        this.isFree = isFree(all) && areBudgetsFree
                && users.values().stream().allMatch(ActiveThrottles::isFree);
        this.isStopping = stops(all) || users.values().stream().anyMatch(ActiveThrottles::stops)
                || budgets.values().stream().anyMatch(ActiveThrottles::stops);
    }

    static ActiveThrottles none(Factors factors, Settings settings, long nanos) {
        return new ActiveThrottles(
                factors, Throttle.free(nanos), Map.of(), Map.of(), 0, settings, Scope.ALL);
    }

    private static boolean isFree(Throttle throttle) {
        return throttle == null || throttle.mode == Mode.FREE;
    }

    /** Whether the factor of a throttle is 0; false for null. */
    static boolean stops(Throttle throttle) {
        return throttle != null && throttle.mode == Mode.THROTTLED;
    }

    /** Whether a client's factor is 0, by its tags and by whether its request is in scope. */
    public boolean stops(String user, String clientId, boolean isInScope) {
        return isStopping
                && !settings.excludes(user, clientId)
                && (isInScope && stops(all) || stops(users.get(user)));
    }

    /** Whether the budget of an owner is used up; false for null. */
    public boolean stopsOwner(String owner) {
        return owner != null && stops(budgets.get(owner));
    }

    /** Takes landed bytes from the leak budgets of the throttles that stop a tag set. */
    void take(TagSet tagSet, double bytes, boolean isInScope, long nanos) {
        if (!isStopping || bytes < Enforcement.ONE_BYTE) {
            return;
        }
        if (isInScope && stops(all)) {
            all.take(tagSet, bytes, settings, factors.leak, nanos);
        }
        Throttle own = users.get(tagSet.user);
        if (stops(own)) {
            own.take(tagSet, bytes, settings, Leak.WHOLE, nanos);
        }
    }

    /**
     * Whether a new connection's request may land. It may if the share of its tag set in the leak
     * budget allows it; the share is then reserved.
     *
     * @param tagSet null for a client that never had one.
     * @param user the user's tag; the user's factor is 0.
     */
    boolean admits(TagSet tagSet, String user, boolean isInScope, long nanos) {
        boolean byAll = isInScope && stops(all);
        if (byAll && !all.reserve(tagSet, settings, factors.leak, nanos)) {
            return false;
        }
        Throttle own = users.get(user);
        if (!stops(own) || own.reserve(tagSet, settings, Leak.WHOLE, nanos)) {
            return true;
        }
        if (byAll) {
            all.cancel(tagSet);
        }
        return false;
    }

    /** Whether a tag set's clients are not throttled. */
    boolean isFree(TagSet tagSet) {
        return isFree || tagSet.isExcluded(settings)
                || isFree(all) && areBudgetsFree && isFree(users.get(tagSet.user));
    }

    /**
     * Notes the rate of a tag set before a throttle that begins now: the measured rate, unless another
     * throttle influenced it.
     *
     * @param isNew whether the tag set is too new for its rate to be known.
     */
    void noteBefore(TagSet tagSet, double measured, boolean isNew, long nanos) {
        Throttle user = users.get(tagSet.user);
        Throttle budget = tagSet.owner == null ? null : budgets.get(tagSet.owner);
        double last = tagSet.before;
        boolean isFree = isFree(all) && isFree(user) && isFree(budget);
        if (!isFree && last > 0.0) {
            return;
        }
        boolean isRecent = all.isRecent(nanos) || user != null && user.isRecent(nanos)
                || budget != null && budget.isRecent(nanos);
        tagSet.before = isRecent ? Math.max(last, measured) : measured;
        tagSet.isBeforeLeast = !isFree || isNew;
    }

    long epoch(String user) {
        Throttle own = users.isEmpty() ? null : users.get(user);
        long epoch = Math.max(all.epoch, budgetsEpoch);
        return own == null ? epoch : Math.max(epoch, own.epoch);
    }

    /** The epoch of the budgets from now on, if an owner is past its budget: the same while one was. */
    long budgetsEpoch(long next) {
        return areBudgetsFree ? next : budgetsEpoch;
    }
}
