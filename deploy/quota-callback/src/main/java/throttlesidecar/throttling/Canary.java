package throttlesidecar.throttling;

import java.util.concurrent.atomic.LongAdder;
import throttlesidecar.observability.Faults;

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

    void reset() {
        requests.reset();
        quotas.reset();
    }

    /** Notes the fault, or that it is over; not while too few requests came to know. */
    void check(Faults faults) {
        long came = requests.sum();
        long asked = quotas.sum();
        if (came >= LEAST && asked * USUALLY >= came) {
            faults.gone(Faults.Kind.NOT_ASKED);
        } else if (came >= LEAST) {
            faults.found(
                    Faults.Kind.NOT_ASKED,
                    came + " requests of throttled clients, " + asked + " quotas");
        }
    }
}
