package throttlesidecar.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Time in which a broker stands still does not count. */
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

    /** The example of its Javadoc. */
    @Test
    void aPauseCountsAsTheMostBetweenTwoLooks() {
        looks(0);
        looks(10);
        looks(10);
        clocks.pass(600);
        assertEquals(45, ranMs());
        running.look();
        assertEquals(45, ranMs(), "a look changes nothing");
        clocks.pass(5);
        assertEquals(50, ranMs());
    }

    /** Who needs no such thread has the clock's time. */
    @Test
    void itIsTheClocksBeforeTheFirstLook() {
        clocks.pass(600);
        assertEquals(600, ranMs());
        running.look();
        assertEquals(600, ranMs());
    }

    /** The thread itself. */
    @Test
    void aThreadLooks() throws InterruptedException {
        RunningTime real = new RunningTime(Clocks.SYSTEM);
        real.start(() -> true);
        long clock = System.nanoTime();
        long before = real.nanos();
        long ran = 0;
        for (int each = 0; each < 1000 && ran < 200_000_000L; each++) {
            Thread.sleep(5);
            ran = real.nanos() - before;
        }
        assertTrue(ran >= 200_000_000L, "it stands still");
        assertTrue(System.nanoTime() - clock >= ran, "it is faster than the clock");
        real.close();
    }
}
