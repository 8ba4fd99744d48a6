package throttlesidecar.throttling;

import java.util.concurrent.atomic.LongAdder;

/**
 * Notices that Kafka no longer asks for quotas: in each throttle it compares how many produce
 * requests came with how many quotas were computed for them.
 *
 * <p>Kafka asks for a client's tags once for each request, and again when it pauses the client. It asks
 * for the quota once. Half as many quotas as requests are therefore normal, and less than a quarter is
 * a fault. The first {@link #LEAST} requests of a throttle are too few to decide.
 *
 * <p>Example: 1,000 requests and 500 quotas are normal. With 1,000 requests and 3 quotas, the metrics
 * reporter no longer receives the tag sets.
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
