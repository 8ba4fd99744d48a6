package throttlesidecar;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Quota;

/**
 * The clients that share one produce quota: those with the same metric tags (user, client-id).
 *
 * <p>Everything here may be read and written by many request threads at once, and nothing is
 * guarded by a lock: {@link Enforcement} says who may write what, and when.
 */
final class TagSet {
    private static final long NEVER = -1;

    private final String user;
    private final String clientId;

    /** Kafka's rate of what has landed; null before the first request and an hour after the last. */
    private volatile KafkaMetric metric;

    private volatile Own own = new Own(NEVER, null);

    /** The throttle that the three below belong to. */
    private final AtomicLong epoch = new AtomicLong(NEVER);

    /** The bytes in the rate's window that have been answered with a pause, as a double's bits. */
    private final AtomicLong counted = new AtomicLong();

    /** What was given last; null when nothing was in this throttle. */
    private volatile Quota lastBound;

    /** Bytes per second when the throttle began; 0 when there was no traffic. */
    private volatile double before;

    /** Paces this tag set alone, after a release; null before the first one. */
    private volatile Pacer pacer;

    TagSet(String user, String clientId) {
        this.user = user;
        this.clientId = clientId;
    }

    /** The tag "user": sanitised, or empty. */
    String user() {
        return user;
    }

    /** The tag "client-id", or empty. */
    String clientId() {
        return clientId;
    }

    KafkaMetric metric() {
        return metric;
    }

    void metric(KafkaMetric metric) {
        this.metric = metric;
    }

    /** The quota that it was given; Kafka's "none" is the largest long. */
    Quota own(OwnLimit limits) {
        Own known = own;
        long version = limits.version();
        if (known.version != version) {
            Double limit = limits.of(user, clientId);
            known = new Own(version, Quota.upperBound(limit == null ? Long.MAX_VALUE : limit));
            own = known;
        }
        return known.quota;
    }

    /**
     * Makes what was counted that of a throttle that is new to it.
     *
     * @param newEpoch the throttle's.
     * @param landed bytes in the window so far.
     * @return whether it was new.
     */
    boolean begin(long newEpoch, double landed) {
        long old = epoch.get();
        if (old == newEpoch || !epoch.compareAndSet(old, newEpoch)) {
            return false;
        }
        lastBound = null;
        counted.set(Double.doubleToRawLongBits(landed));
        return true;
    }

    boolean isIn(long someEpoch) {
        return epoch.get() == someEpoch;
    }

    /** Takes away what has left the window; what has landed since and is not counted stays so. */
    void expire(double landed) {
        long seen = counted.get();
        while (landed < Double.longBitsToDouble(seen)) {
            if (counted.compareAndSet(seen, Double.doubleToRawLongBits(landed))) {
                return;
            }
            seen = counted.get();
        }
    }

    /** Counts all that has landed; returns how many bytes of it are new. */
    double count(double landed) {
        long seen = counted.getAndSet(Double.doubleToRawLongBits(landed));
        return landed - Double.longBitsToDouble(seen);
    }

    Quota lastBound() {
        return lastBound;
    }

    void lastBound(Quota bound) {
        lastBound = bound;
    }

    double before() {
        return before;
    }

    void before(double bytesPerSecond) {
        before = bytesPerSecond;
    }

    Pacer pacer() {
        return pacer;
    }

    void pacer(Pacer newPacer) {
        pacer = newPacer;
    }

    /** A quota and what it was resolved from. */
    private static final class Own {
        private final long version;
        private final Quota quota;

        Own(long version, Quota quota) {
            this.version = version;
            this.quota = quota;
        }
    }
}
