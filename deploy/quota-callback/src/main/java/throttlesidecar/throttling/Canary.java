package throttlesidecar.throttling;

import java.util.concurrent.atomic.LongAdder;

/**
 * Notices that Kafka no longer asks for quotas: in each throttle it compares how many produce
 * requests came with how many quotas were computed for them.
 *
 * <p>Kafka asks for a client's tags once for each request, and again when it pauses the client; it
 * asks for the quota once. So half as many are as usual, and under a quarter is a fault. The first
 * {@link #LEAST} requests of a throttle are too few to say.
 *
 * <p>Example: 1,000 requests and 500 quotas are well; 1,000 and 3 are those of tag sets that the
 * metrics reporter no longer hears of.
 */
public final class Canary {
    public static final long LEAST = 100;
    private static final long USUALLY = 4;

    private final LongAdder requests = new LongAdder();
    private final LongAdder quotas = new LongAdder();

    /** A throttled client's request, before it is recorded. */
    void request() {
        requests.increment();
    }

    /** A quota was computed for a request. */
    void quota() {
        quotas.increment();
    }

    /** Another throttle begins. */
    void reset() {
        requests.reset();
        quotas.reset();
    }

    /** Whether Kafka asks; null: too few requests came to know. */
    Boolean isAsked() {
        long came = requests.sum();
        return came < LEAST ? null : Boolean.valueOf(quotas.sum() * USUALLY >= came);
    }

    @Override
    public String toString() {
        return requests.sum() + " requests of throttled clients, " + quotas.sum() + " quotas";
    }
}
