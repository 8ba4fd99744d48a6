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
 * The clients that share one produce quota because they have the same metric tags (user, client-id).
 *
 * <p>Many request threads read and write a tag set at the same time, without a lock. {@link
 * Enforcement} defines which thread may write what, and when.
 */
public final class TagSet {
    public static final String USER_TAG = "user";
    public static final String CLIENT_ID_TAG = "client-id";

    private static final long NEVER = -1;

    /** The tag "user": sanitised, or empty. */
    final String user;

    private final String clientId;

    /** Kafka's rate of landed bytes; null before the first request, and after Kafka removes it. */
    volatile KafkaMetric metric;

    /** When the first request came, on the monotonic clock; null if before the reporter began. */
    volatile Long sinceNanos;

    private volatile Own own = new Own(NEVER, null);

    /** The account of the last throttle, replaced as a whole so that two accounts never mix. */
    private final AtomicReference<Account> account = new AtomicReference<>(new Account(NEVER, 0.0));

    /** Bytes per second when the throttle began; 0 if there was no traffic. */
    volatile double before;

    /**
     * Whether the client may write more than {@link #before}, because it was measured in a ramp or in
     * the client's first seconds, and no earlier rate is known.
     */
    volatile boolean isBeforeLeast;

    /** The owner past its storage budget that the last throttled request wrote to; null for none. */
    volatile String owner;

    /** Paces this tag set after a release; null before the first one. */
    volatile Pacer pacer;

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

    boolean isExcluded(Settings settings) {
        return settings.excludes(user, clientId);
    }

    public KafkaMetric metric() {
        return metric;
    }

    /** The quota that operators set; Kafka's value for none is the largest long. */
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
     * Opens an account for a throttle, unless there is one already.
     *
     * @param epoch the throttle's.
     * @param landed the bytes in the window so far, which do not count.
     */
    void begin(long epoch, double landed) {
        Account old = account.get();
        if (old.epoch != epoch) {
            account.compareAndSet(old, new Account(epoch, landed));
        }
    }

    /** The account for a throttle; null if there is none. */
    Account account(long epoch) {
        Account last = account.get();
        return last.epoch == epoch ? last : null;
    }

    /** The bytes that were counted within one throttle. */
    static final class Account {
        private final long epoch;

        /** The counted bytes in the rate's window, as a double's bits. */
        private final AtomicLong counted;

        /** The bytes of the last request. */
        private double last;

        /** Whether the last quota was smaller than the client's own. */
        volatile boolean throttles;

        private Account(long epoch, double landed) {
            this.epoch = epoch;
            this.counted = new AtomicLong(Double.doubleToRawLongBits(landed));
        }

        /** The counted bytes, for {@link #expire}. */
        long counted() {
            return counted.get();
        }

        /**
         * Subtracts the bytes that have left the window. If more bytes were counted meanwhile, the next
         * request does it.
         *
         * @param seen the counted bytes, read before {@code landed}.
         */
        void expire(long seen, double landed) {
            if (landed < Double.longBitsToDouble(seen)) {
                counted.compareAndSet(seen, Double.doubleToRawLongBits(landed));
            }
        }

        /**
         * Counts all landed bytes, under the sensor's monitor, and returns the bytes that are new.
         *
         * <p>After the wall clock was set back, Kafka's rate overwrites samples that still count when
         * it opens new ones. That can hide a request, which then counts like the last one, or like a
         * second's bytes if it is the first.
         *
         * @param windowS of the rate, seconds.
         */
        double count(double landed, double windowS) {
            long seen = counted.getAndSet(Double.doubleToRawLongBits(landed));
            double bytes = landed - Double.longBitsToDouble(seen);
            if (bytes >= Enforcement.ONE_BYTE) {
                last = bytes;
            } else if (last == 0.0) {
                last = landed / windowS;
            }
            return last;
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
