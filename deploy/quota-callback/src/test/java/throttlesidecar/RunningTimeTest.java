package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Time in which a broker stands still does not count. */
class RunningTimeTest {
    private final MovedMoments moments = new MovedMoments();
    private final RunningTime running = new RunningTime(moments);
    private final long began = moments.nanos();

    private long ranMs() {
        return (running.nanos() - began) / 1_000_000;
    }

    private void looks(long afterMs) {
        moments.pass(afterMs);
        running.look();
    }

    /** The example of its Javadoc. */
    @Test
    void aPauseCountsAsTheMostBetweenTwoLooks() {
        looks(0);
        looks(10);
        looks(10);
        moments.pass(600);
        assertEquals(45, ranMs());
        running.look();
        assertEquals(45, ranMs(), "a look changes nothing");
        moments.pass(5);
        assertEquals(50, ranMs());
    }

    /** Who needs no such thread has the clock's time. */
    @Test
    void itIsTheClocksBeforeTheFirstLook() {
        moments.pass(600);
        assertEquals(600, ranMs());
        running.look();
        assertEquals(600, ranMs());
    }

    /** The thread itself. */
    @Test
    void aThreadLooks() throws InterruptedException {
        RunningTime real = new RunningTime(Moments.SYSTEM);
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
