package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Whose turn it is of several sidecars, in virtual time. */
class TurnsTest {
    private static final long MS = 1_000_000L;

    /** Each turn as number@ms; a sidecar below {@code hanging} fails after 2 s. */
    private static List<String> turns(int count, int hanging, int most) {
        long now = Long.MAX_VALUE - 1000 * MS;
        long start = now;
        Turns turns = new Turns(count, now);
        List<String> seen = new ArrayList<>();
        while (seen.size() < most) {
            int number = turns.next();
            now = turns.dueNanos();
            seen.add(number + "@" + (now - start) / MS);
            boolean failed = number < hanging;
            now += failed ? 2000 * MS : 0;
            turns.ended(number, failed, now);
        }
        return seen;
    }

    /** One a second, whoever; the clock may wrap meanwhile. */
    @Test
    void thoseThatAnswerAreAskedInTurn() {
        assertEquals(List.of("0@0", "1@1000", "2@2000", "0@3000"), turns(3, 0, 4));
        assertEquals(List.of("0@0", "0@1000", "0@2000"), turns(1, 0, 3));
    }

    /** It waits for 2 s and then for 4 s, in which the other one is asked once a second. */
    @Test
    void oneThatHangsHasToWait() {
        List<String> expected =
                List.of(
                        "0@0", "1@3000", "0@4000", "1@7000", "1@8000", "1@9000", "0@10000",
                        "1@13000", "1@14000", "1@15000", "0@16000");
        assertEquals(expected, turns(2, 1, 11));
    }
}
