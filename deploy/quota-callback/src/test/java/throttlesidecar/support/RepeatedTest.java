package throttlesidecar.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class RepeatedTest {

    /** The thread survives every error, also one of the method that receives errors. */
    @Test
    void goesOnAfterErrors() throws Exception {
        AtomicInteger failures = new AtomicInteger();
        CountDownLatch works = new CountDownLatch(4);
        Runnable work = () -> {
            works.countDown();
            if (works.getCount() > 0) {
                throw new OutOfMemoryError("Java heap space");
            }
        };
        Repeated thread = new Repeated("test", work, () -> 1, error -> {
            failures.incrementAndGet();
            throw new IllegalStateException(error);
        });
        thread.start();
        assertTrue(works.await(10, TimeUnit.SECONDS));
        thread.close();
        assertEquals(3, failures.get());
    }
}
