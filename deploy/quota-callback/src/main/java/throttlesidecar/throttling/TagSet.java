package throttlesidecar.throttling;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Quota;
import throttlesidecar.settings.Settings;

/**
 * The clients that share one produce quota: those with the same metric tags (user, client-id).
 *
 * <p>Many request threads may read and write all of this at once, without a lock: {@link Enforcement}
 * defines who may write what, and when.
 */
public final class TagSet {
    public static final String USER_TAG = "user";
    public static final String CLIENT_ID_TAG = "client-id";

    private static final long NEVER = -1;

    private final String user;
    private final String clientId;

    /** Kafka's rate of what has landed; null before the first request, and once it is removed. */
    private volatile KafkaMetric metric;

    /** When its first request came, on the monotonic clock; null: before the reporter began. */
    private volatile Long sinceNanos;

    private volatile Own own = new Own(NEVER, null);

    /** What was counted in the last throttle; replaced as a whole, so that no two ever mix. */
    private final AtomicReference<Account> account =
            new AtomicReference<>(new Account(NEVER, 0.0));

    /** Bytes per second when the throttle began; 0 when there was no traffic. */
    private volatile double before;

    /** Paces this tag set after a release; null before the first one. */
    private volatile Pacer pacer;

    TagSet(String user, String clientId) {
        this.user = user;
        this.clientId = clientId;
    }

    /** The tags of a user and a client-id, in Kafka's order. */
    public static Map<String, String> tagsOf(String user, String clientId) {
        Map<String, String> tags = new LinkedHashMap<>();
        tags.put(USER_TAG, user);
        tags.put(CLIENT_ID_TAG, clientId);
        return Collections.unmodifiableMap(tags);
    }

    /** The tag "user": sanitised, or empty. */
    String user() {
        return user;
    }

    boolean isExcluded(Settings settings) {
        return settings.excludes(user, clientId);
    }

    public KafkaMetric metric() {
        return metric;
    }

    void metric(KafkaMetric newMetric) {
        metric = newMetric;
    }

    Long sinceNanos() {
        return sinceNanos;
    }

    void sinceNanos(long nanos) {
        sinceNanos = nanos;
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

    /** The quota that operators set; Kafka's "none" is the largest long. */
    Quota own(OwnLimit quotas) {
        Own known = own;
        long version = quotas.version();
        if (known.version != version) {
            Double limit = quotas.of(user, clientId);
            known = new Own(version, Quota.upperBound(limit == null ? Long.MAX_VALUE : limit));
            own = known;
        }
        return known.quota;
    }

    /**
     * Opens an account for a throttle, unless there is one.
     *
     * @param epoch the throttle's.
     * @param landed bytes in the window so far; they don't count.
     */
    void begin(long epoch, double landed) {
        Account old = account.get();
        if (old.epoch != epoch) {
            account.compareAndSet(old, new Account(epoch, landed));
        }
    }

    /** The account for a throttle; null when there is none. */
    Account account(long epoch) {
        Account last = account.get();
        return last.epoch == epoch ? last : null;
    }

    /** The bytes that were counted within one throttle. */
    static final class Account {
        private final long epoch;

        /** The bytes in the rate's window that were counted, as a double's bits. */
        private final AtomicLong counted;

        /** The bytes of the last request that was seen. */
        private double last;

        /** Whether the last quota was smaller than the client's own. */
        private volatile boolean throttles;

        private Account(long epoch, double landed) {
            this.epoch = epoch;
            this.counted = new AtomicLong(Double.doubleToRawLongBits(landed));
        }

        /** What is counted, for {@link #expire}. */
        long counted() {
            return counted.get();
        }

        /**
         * Subtracts what has left the window, unless more was counted meanwhile: the next request
         * does it then.
         *
         * @param seen what was counted before landed was read.
         */
        void expire(long seen, double landed) {
            if (landed < Double.longBitsToDouble(seen)) {
                counted.compareAndSet(seen, Double.doubleToRawLongBits(landed));
            }
        }

        /**
         * Counts all that has landed, under the sensor's monitor, and returns the bytes that are new.
         *
         * <p>After the wall clock was set back Kafka's rate overwrites samples that still count
         * when it opens others, which hides as much of a request: that counts as the last one.
         */
        double count(double landed) {
            long seen = counted.getAndSet(Double.doubleToRawLongBits(landed));
            double bytes = landed - Double.longBitsToDouble(seen);
            if (bytes >= Enforcement.ONE_BYTE) {
                last = bytes;
            }
            return last;
        }

        boolean throttles() {
            return throttles;
        }

        void throttles(boolean now) {
            throttles = now;
        }
    }

    /** A quota and the version of the quotas that it was resolved from. */
    private static final class Own {
        private final long version;
        private final Quota quota;

        Own(long version, Quota quota) {
            this.version = version;
            this.quota = quota;
        }
    }
}
