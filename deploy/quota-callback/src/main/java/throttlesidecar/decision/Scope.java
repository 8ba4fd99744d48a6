package throttlesidecar.decision;

import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * The requests that the factor for all clients applies to: all requests, or those that write to certain
 * topics, which are on the volumes that are too full.
 */
public final class Scope {
    public static final Scope ALL = new Scope(null);

    private final Set<String> topics;

    private Scope(Set<String> topics) {
        this.topics = topics;
    }

    /** The requests that write to at least one of these topics. */
    public static Scope of(Set<String> topics) {
        return new Scope(Set.copyOf(topics));
    }

    public boolean isAll() {
        return topics == null;
    }

    /** The requests that are in this scope or in the other. */
    public Scope and(Scope other) {
        if (isAll() || other.isAll()) {
            return ALL;
        }
        if (topics.containsAll(other.topics)) {
            return this;
        }
        Set<String> both = new HashSet<>(topics);
        both.addAll(other.topics);
        return new Scope(both);
    }

    /** Whether a produce request is in this scope; topics that it may not write to do not count. */
    public boolean has(List<Action> actions, List<AuthorizationResult> results) {
        return isAll() || writesToAny(actions, results, topics::contains);
    }

    /** Whether a request may write to a topic that fits; the results are those of the actions, in order. */
    public static boolean writesToAny(
            List<Action> actions, List<AuthorizationResult> results, Predicate<String> fits) {
        for (int each = 0; each < actions.size(); each++) {
            ResourcePattern resource = actions.get(each).resourcePattern();
            if (resource.resourceType() == ResourceType.TOPIC
                    && results.get(each) == AuthorizationResult.ALLOWED
                    && fits.test(resource.name())) {
                return true;
            }
        }
        return false;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Scope && Objects.equals(topics, ((Scope) other).topics);
    }

    @Override
    public int hashCode() {
        return Objects.hashCode(topics);
    }
}
