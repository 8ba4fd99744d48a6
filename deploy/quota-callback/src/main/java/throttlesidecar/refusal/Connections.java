package throttlesidecar.refusal;

import java.util.concurrent.atomic.AtomicInteger;
import throttlesidecar.support.Recent;

/**
 * The connections that produce to the broker in this JVM, as its authorizer sees them. It also links
 * the authorizer with the callback: Kafka makes the two separately, in either order, and makes two of
 * each in combined mode.
 *
 * <p>Kafka tells no plugin that a connection opens or closes. So a connection is noted by its id when
 * it produces while nothing stops its user. The most recent connections are kept. A connection that was
 * idle while tens of thousands of others produced may be forgotten; it then counts as new in the next
 * throttle. So does every connection to a broker that starts during a throttle.
 */
public final class Connections {
    /** The JVM's. */
    public static final Connections SHARED = new Connections(65_536);

    private final Recent<String, Boolean> known;
    private final AtomicInteger authorizers = new AtomicInteger();
    private volatile Refusals refusals;
    private volatile String problem;

    public Connections(int most) {
        known = new Recent<>(most);
    }

    /** Notes a connection that produces to a topic that is not excluded. */
    void note(String id) {
        if (known.get(id) == null) {
            known.put(id, Boolean.TRUE);
        }
    }

    boolean knows(String id) {
        return known.get(id) != null;
    }

    /** About how many connections are known. */
    public int size() {
        return known.size();
    }

    /** Decides about requests; null while no callback is configured. */
    public Refusals refusals() {
        return refusals;
    }

    public void refusals(Refusals newRefusals) {
        refusals = newRefusals;
    }

    /** Adds to the number of a broker's authorizers: 1 or -1. */
    public void authorizers(int more) {
        authorizers.addAndGet(more);
    }

    /** Notes why an authorizer refuses nothing. */
    public void cannotRefuse(String reason) {
        problem = reason;
    }

    /** Why an authorizer refuses nothing; null without such a problem. */
    public String problem() {
        return problem;
    }

    /** Whether anything can be refused here. */
    public boolean hasAuthorizer() {
        return authorizers.get() > 0;
    }
}
