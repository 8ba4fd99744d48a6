package throttlesidecar.decision;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * The owners of topics that are past their storage budgets, each with the factor of the requests that
 * write to its topics. Of several owners that a request writes to, the one with the lowest factor counts.
 *
 * <p>A request costs a look-up for each of its topics, however many owners there are.
 */
public final class Budgets {
    public static final Budgets NONE = new Budgets(Map.of(), Map.of());

    /** Each owner's factor, from 0 to below 1. */
    public final Map<String, Double> factors;

    /** The owner of each topic. */
    private final Map<String, String> owners;

    public Budgets(Map<String, Double> factors, Map<String, String> owners) {
        this.factors = Map.copyOf(factors);
        this.owners = Map.copyOf(owners);
    }

    public boolean isEmpty() {
        return factors.isEmpty();
    }

    /** The owners of both; the lower factor of each counts. */
    public Budgets and(Budgets other) {
        if (other.isEmpty() || equals(other)) {
            return this;
        }
        if (isEmpty()) {
            return other;
        }
        Map<String, Double> both = new HashMap<>(factors);
        other.factors.forEach((owner, factor) -> both.merge(owner, factor, Math::min));
        Map<String, String> topics = new HashMap<>(other.owners);
        topics.putAll(owners);
        return new Budgets(both, topics);
    }

    /** The owner with the lowest factor that a produce request may write to; null if there is none. */
    public String strictest(List<Action> actions, List<AuthorizationResult> results) {
        String strictest = null;
        for (int each = 0; each < actions.size() && !isEmpty(); each++) {
            ResourcePattern resource = actions.get(each).resourcePattern();
            if (resource.resourceType() == ResourceType.TOPIC
                    && results.get(each) == AuthorizationResult.ALLOWED) {
                strictest = stricter(strictest, owners.get(resource.name()));
            }
        }
        return strictest;
    }

    /** The one of two owners with the lower factor; null stands for no owner. */
    private String stricter(String one, String other) {
        if (one == null || other == null || one.equals(other)) {
            return one == null ? other : one;
        }
        return factors.getOrDefault(other, 1.0) < factors.getOrDefault(one, 1.0) ? other : one;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Budgets
                && factors.equals(((Budgets) other).factors)
                && owners.equals(((Budgets) other).owners);
    }

    @Override
    public int hashCode() {
        return factors.hashCode();
    }
}
