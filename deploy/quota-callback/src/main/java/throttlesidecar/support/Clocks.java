package throttlesidecar.support;

/** The two clocks, injected so that tests can move them. */
public interface Clocks {

    /** The machine's clock as Kafka's sensors see it, milliseconds since the epoch. */
    long nowMs();

    /** A monotonic clock, nanoseconds from an unknown start. */
    long nanos();

    Clocks SYSTEM = new Clocks() {
        @Override
        public long nowMs() {
            return System.currentTimeMillis();
        }

        @Override
        public long nanos() {
            return System.nanoTime();
        }
    };
}
