package throttlesidecar.support;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.utils.Time;

/** Clocks that a test moves, for the callback and for Kafka. */
public class MovedClocks implements Clocks {
    private final AtomicLong ms = new AtomicLong(1_700_000_000_000L);
    private final AtomicLong wallOffsetMs = new AtomicLong();

    @Override
    public long nowMs() {
        return ms.get() + wallOffsetMs.get();
    }

    @Override
    public long nanos() {
        return TimeUnit.MILLISECONDS.toNanos(ms.get());
    }

    public void pass(long millis) {
        ms.addAndGet(millis);
    }

    /** Sets the wall clock, which Kafka's windows use, and leaves the monotonic clock. */
    public void stepWall(long millis) {
        wallOffsetMs.addAndGet(millis);
    }

    /** The clocks as Kafka's type. */
    public static Time time(Clocks clocks) {
        return (Time) java.lang.reflect.Proxy.newProxyInstance(
                Time.class.getClassLoader(),
                new Class<?>[] {Time.class},
                (proxy, method, arguments) -> {
                    switch (method.getName()) {
                        case "milliseconds":
                            return clocks.nowMs();
                        case "hiResClockMs":
                            return TimeUnit.NANOSECONDS.toMillis(clocks.nanos());
                        case "nanoseconds":
                            return clocks.nanos();
                        default:
                            throw new UnsupportedOperationException(method.getName());
                    }
                });
    }
}
