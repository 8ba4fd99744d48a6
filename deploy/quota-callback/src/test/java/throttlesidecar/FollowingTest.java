package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import throttlesidecar.Factors.Source;

/** Which factors are in force when, by what was heard: no thread, no clock, no socket. */
class FollowingTest {
    /** Shortly before the clock overflows, which it may do. */
    private static final long START = Long.MAX_VALUE - 1_000_000_000L;

    private static final String TAG = "\"a-1\"";

    private final Lines lines = new Lines();
    private Terms terms = new Terms("http://s:1", true, 0.25, 5_000);
    private final Following following = new Following(terms, lines, START);
    private long now = START;

    /** Before the first answer the fallback is in force, and the first question does not wait. */
    @Test
    void beginsWithTheFallback() {
        Factors first = following.decide(now);

        assertEquals(0.25, first.global());
        assertEquals(Source.FALLBACK, first.source());
        assertEquals(-1, following.ageMs(now));
        Following.Question question = following.question(now);
        assertNull(question.etag);
        assertEquals(0, question.waitS);
        assertNull(following.question(now));
    }

    /** A document holds through the last moment of its validity, then the fallback does. */
    @Test
    void holdsWhileValid() {
        onAnswer(news(0.0, 1000));
        assertEquals(0.0, following.decide(now).global());
        now += TimeUnit.MILLISECONDS.toNanos(1000);
        settle();
        assertEquals(0.0, decided().global());
        assertTrue(following.nextNanos(now) - now <= 1);
        now += 1;

        Factors after = following.decide(now);
        assertEquals(0.25, after.global());
        assertEquals(Source.FALLBACK, after.source());
        assertEquals(1, lines.count("valid no longer"));
    }

    /** Nothing has to be looked at sooner than what is next: a question, or the validity's end. */
    @Test
    void saysWhatIsNext() {
        onAnswer(news(1.0, 60_000));
        following.decide(now);
        assertEquals(100, msToNext());
        pass(10_000);
        following.decide(now);
        ask();
        assertEquals(50_000, msToNext());
        following.onAnswer(Answer.failed("no"), now);
        assertEquals(500, msToNext());
    }

    /** 304 renews, counted from when it came, and tells how soon the disk is full. */
    @Test
    void isRenewed() {
        onAnswer(news(0.0, 1000));
        following.decide(now);
        pass(900);
        ask();
        long at = now;
        pass(500);
        following.onAnswer(Answer.unchanged(1000, 12.5, at), now);

        Factors renewed = following.decide(now);
        assertEquals(0.0, renewed.global());
        assertEquals(12.5, renewed.secondsToFull());
        assertEquals(500, following.ageMs(now));
        pass(500);
        assertEquals(Source.SIDECAR, decided().source());
        pass(1);
        assertEquals(Source.FALLBACK, following.decide(now).source());
    }

    /** An answer that can't be used changes nothing, is counted, and told once. */
    @Test
    void survivesFailures() {
        onAnswer(news(0.0, 60_000));
        following.decide(now);
        for (int round = 0; round < 20; round++) {
            pass(1000);
            ask();
            following.onAnswer(Answer.failed("factor is 7.0"), now);
        }

        assertEquals(0.0, decided().global());
        assertEquals(20, following.failures());
        assertEquals(1, lines.count("factor is 7.0"), lines.toString());
        assertEquals(1, lines.count("holds for another 59 s, then the fallback 0.25"));
        onAnswer(Answer.unchanged(60_000, Double.NaN, now));
        assertEquals(1, lines.count("answers again, after 20 failures in 19 s"), lines.toString());
    }

    /** The same document heard again is applied, for its seconds to full, and told once. */
    @Test
    void tellsChangesOnly() {
        onAnswer(news(0.0, 60_000));
        assertNotNull(following.decide(now));
        assertNull(following.decide(now));
        for (int round = 0; round < 5; round++) {
            pass(10_000);
            onAnswer(Answer.unchanged(60_000, round, now));
            assertEquals(round, following.decide(now).secondsToFull());
            assertNull(following.decide(now));
        }
        assertEquals(1, lines.count("multiplied by 0.0"), lines.toString());
        onAnswer(news(1.0, 60_000));
        following.decide(now);

        assertEquals(1, lines.count("I: Produce quotas are multiplied by 1.0"), lines.toString());
    }

    /** Questions wait as long as nothing is throttled and the last one was answered. */
    @Test
    void waitsByWhatIsInForce() {
        assertEquals(0, ask().waitS);
        following.onAnswer(news(1.0, 60_000), now);
        following.decide(now);
        assertEquals(Following.WAIT_S, ask().waitS);
        following.onAnswer(news(0.0, 60_000), now);
        following.decide(now);
        assertEquals(Following.WAIT_THROTTLED_S, ask().waitS);
        following.onAnswer(Answer.failed("no"), now);
        assertEquals(0, ask().waitS);
        following.onAnswer(
                Answer.news(document(1.0, Map.of("etl", 0.0), 60_000), TAG, now), now);
        following.decide(now);

        Following.Question last = ask();
        assertEquals(Following.WAIT_THROTTLED_S, last.waitS);
        assertEquals(TAG, last.etag);
    }

    /** Between questions there is a rest, whatever the sidecar answers and how soon. */
    @Test
    void rests() {
        ask();
        following.onAnswer(news(1.0, 60_000), now);
        assertEquals(100, msToQuestion());
        ask();
        following.onAnswer(Answer.news(document(1.0, Map.of(), 60_000), null, now), now);
        assertEquals(1000, msToQuestion());
        ask();
        following.onAnswer(Answer.failed("no"), now);
        assertEquals(500, msToQuestion());
        ask();
        pass(12_000);
        following.onAnswer(Answer.failed("slow"), now);

        assertEquals(100, msToQuestion());
    }

    /** Switched off, nothing is asked and every factor is 1; on again, what is valid counts. */
    @Test
    void canBeSwitchedOff() {
        onAnswer(news(0.0, 60_000));
        following.decide(now);
        following.adopt(new Terms("http://s:1", false, 0.25, 5_000), true, now);

        Factors off = following.decide(now);
        assertEquals(Source.DISABLED, off.source());
        assertEquals(1.0, off.global());
        assertNull(following.question(now));
        pass(30_000);
        following.adopt(terms, true, now);
        assertEquals(0.0, following.decide(now).global());
        assertEquals(TAG, following.question(now).etag);
    }

    /** Another sidecar is asked for all; what the last one said holds for its validity. */
    @Test
    void canTurnToAnotherSidecar() {
        onAnswer(news(0.0, 60_000));
        following.decide(now);
        following.adopt(new Terms("http://other:1", true, 1.0, 5_000), false, now);

        assertEquals(0.0, decided().global());
        assertNull(following.question(now).etag);
    }

    /** While a release is under way factors are applied twice a second, and then no more. */
    @Test
    void appliesUntilAReleaseIsOver() {
        onAnswer(news(1.0, 600_000));
        following.decide(now);
        int applied = 0;
        long end = now + TimeUnit.SECONDS.toNanos(60);
        ask();
        while (following.nextNanos(now) - end < 0) {
            now = following.nextNanos(now);
            applied += following.decide(now) == null ? 0 : 1;
        }

        assertEquals(12, applied);
    }

    /** What could not be applied is decided again, without telling it again. */
    @Test
    void appliesAgain() {
        onAnswer(news(0.0, 60_000));
        following.decide(now);
        following.applyAgain();

        assertEquals(0.0, following.decide(now).global());
        assertEquals(1, lines.count("multiplied by 0.0"));
    }

    private Factors decided() {
        following.applyAgain();
        return following.decide(now);
    }

    /** Passes the ticks of a release. */
    private void settle() {
        following.decide(now);
    }

    private long msToNext() {
        return TimeUnit.NANOSECONDS.toMillis(following.nextNanos(now) - now);
    }

    private long msToQuestion() {
        long from = now;
        while (following.question(now) == null) {
            pass(1);
        }
        following.adopt(terms, true, now);
        return TimeUnit.NANOSECONDS.toMillis(now - from);
    }

    private Following.Question ask() {
        Following.Question question = following.question(now);
        while (question == null) {
            pass(1);
            question = following.question(now);
        }
        return question;
    }

    private void onAnswer(Answer answer) {
        long before = now;
        ask();
        now = before;
        following.onAnswer(answer, now);
    }

    private Answer news(double factor, long validForMs) {
        return Answer.news(document(factor, Map.of(), validForMs), TAG, now);
    }

    private static Document document(double factor, Map<String, Double> users, long validForMs) {
        return new Document(factor, users, Double.NaN, 1, validForMs, "why");
    }

    private void pass(long millis) {
        now += TimeUnit.MILLISECONDS.toNanos(millis);
    }
}
