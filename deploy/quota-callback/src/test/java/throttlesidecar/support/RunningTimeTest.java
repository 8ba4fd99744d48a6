package throttlesidecar.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Time in which a broker is paused does not count. */
class RunningTimeTest {
    private final MovedClocks clocks = new MovedClocks();
    private final RunningTime running = new RunningTime(clocks);
    private final long began = clocks.nanos();

    private long ranMs() {
        return (running.nanos() - began) / 1_000_000;
    }

    private void looks(long afterMs) {
        clocks.pass(afterMs);
        running.look();
    }

    /** The example in the Javadoc of RunningTime. */
    @Test
    void aPauseCountsAsTheMostBetweenTwoLooks() {
        looks(0);
        looks(10);
        looks(10);
        clocks.pass(600);
        assertEquals(45, ranMs());
        running.look();
        assertEquals(45, ranMs(), "a reading changes nothing");
        clocks.pass(5);
        assertEquals(50, ranMs());
    }

    /** Without the thread, this is the clock's time. */
    @Test
    void itIsTheClocksBeforeTheFirstLook() {
        clocks.pass(600);
        assertEquals(600, ranMs());
        running.look();
        assertEquals(600, ranMs());
    }

    /** The thread reads the clock. */
    @Test
    void aThreadLooks() throws InterruptedException {
        RunningTime real = new RunningTime(Clocks.SYSTEM);
        real.start(() -> true, error -> {});
        long clock = System.nanoTime();
        long before = real.nanos();
        long ran = 0;
        for (int each = 0; each < 1000 && ran < 200_000_000L; each++) {
            Thread.sleep(5);
            ran = real.nanos() - before;
        }
        assertTrue(ran >= 200_000_000L, "the running time did not advance");
        assertTrue(System.nanoTime() - clock >= ran, "the running time is faster than the clock");
        real.close();
    }
}
