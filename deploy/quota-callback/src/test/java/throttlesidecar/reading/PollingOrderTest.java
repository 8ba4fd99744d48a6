package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The order of requests to several sidecars, in virtual time. */
class PollingOrderTest {
    private static final long MS = 1_000_000L;

    /** Each request as number@ms; a sidecar whose number is below {@code hanging} fails after 2 s. */
    private static List<String> requests(int count, int hanging, int most) {
        long now = Long.MAX_VALUE - 1000 * MS;
        long start = now;
        PollingOrder order = new PollingOrder(count, now);
        List<String> seen = new ArrayList<>();
        while (seen.size() < most) {
            int number = order.next();
            now = order.dueNanos();
            seen.add(number + "@" + (now - start) / MS);
            boolean failed = number < hanging;
            now += failed ? 2000 * MS : 0;
            order.ended(number, failed, now);
        }
        return seen;
    }

    /** One request a second, to one sidecar after another; the clock may wrap meanwhile. */
    @Test
    void thoseThatAnswerAreAskedInTurn() {
        assertEquals(List.of("0@0", "1@1000", "2@2000", "0@3000"), requests(3, 0, 4));
        assertEquals(List.of("0@0", "0@1000", "0@2000"), requests(1, 0, 3));
    }

    /**
     * A failing sidecar waits for 2 s and then for 4 s. Meanwhile the other one is asked once a second.
     */
    @Test
    void oneThatHangsHasToWait() {
        List<String> expected =
                List.of(
                        "0@0", "1@3000", "0@4000", "1@7000", "1@8000", "1@9000", "0@10000",
                        "1@13000", "1@14000", "1@15000", "0@16000");
        assertEquals(expected, requests(2, 1, 11));
    }
}
