package throttlesidecar.refusal;

import java.util.concurrent.atomic.AtomicInteger;
import throttlesidecar.support.Recent;

/**
 * The connections that produce to the broker in this JVM, as its authorizer sees them, and where that
 * finds the callback: Kafka makes the two separately, in either order, and two of each in combined
 * mode.
 *
 * <p>Kafka tells no plugin that a connection opens or closes, so each is noted by its id when it produces while
 * nothing stops its user. The most recent ones are kept. One that is forgotten, as only one can be
 * that was idle while others in their tens of thousands produced, counts as new in the next throttle;
 * so does every connection to a broker that starts in the middle of one.
 */
public final class Connections {
    /** The JVM's. */
    public static final Connections SHARED = new Connections(65_536);

    private final Recent<String, Boolean> known;
    private final AtomicInteger authorizers = new AtomicInteger();
    private volatile Refusals refusals;

    public Connections(int most) {
        known = new Recent<>(most);
    }

    /** Notes a connection that produces to a topic that is not excluded. */
    void note(String id) {
        if (known.get(id) == null) {
            known.put(id, Boolean.TRUE);
        }
    }

    /** Whether it was noted. */
    boolean knows(String id) {
        return known.get(id) != null;
    }

    /** About how many are known. */
    public int size() {
        return known.size();
    }

    /** What decides; null while no callback is configured. */
    public Refusals refusals() {
        return refusals;
    }

    public void refusals(Refusals newRefusals) {
        refusals = newRefusals;
    }

    /** An authorizer of a broker begins, or ends. */
    public void authorizers(int more) {
        authorizers.addAndGet(more);
    }

    /** Whether anything can be refused here. */
    public boolean hasAuthorizer() {
        return authorizers.get() > 0;
    }
}
