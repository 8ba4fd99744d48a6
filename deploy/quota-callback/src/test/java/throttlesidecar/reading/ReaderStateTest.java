package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Budgets;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Factors.Source;
import throttlesidecar.decision.Leak;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.Lines;
import throttlesidecar.settings.Settings;

/** Which factors apply at which time, by the answers, without a thread, a clock or a socket. */
class ReaderStateTest {
    /** The test starts shortly before the clock overflows. */
    private static final long START = Long.MAX_VALUE - 1_000_000_000L;

    private static final String TAG = "\"a-1\"";

    private final Lines lines = new Lines();
    private final Settings settings = settings("http://s:1", true, 0.25);
    private final Faults faults = new Faults();
    private final ReaderState state = new ReaderState(settings, faults, lines, START);
    private long now = START;

    /** Before the first answer, the fallback applies, and the first request does not wait. */
    @Test
    void beginsWithTheFallback() {
        Factors first = state.decide(now);

        assertEquals(0.25, first.global);
        assertEquals(Source.FALLBACK, first.source);
        assertEquals(-1, state.ageMs(now));
        ReaderState.Request request = state.nextRequest(now);
        assertNull(request.etag);
        assertEquals(0, request.waitS);
        assertNull(state.nextRequest(now));
    }

    /** A document applies until the last moment of its validity. After that, the fallback applies. */
    @Test
    void endsWithTheValidity() {
        onAnswer(modified(0.0, 1000));
        assertEquals(0.0, state.decide(now).global);
        now += TimeUnit.MILLISECONDS.toNanos(1000);
        settle();
        assertEquals(0.0, decided().global);
        assertTrue(state.nextNanos(now) - now <= 1);
        now += 1;

        Factors after = state.decide(now);
        assertEquals(0.25, after.global);
        assertEquals(Source.FALLBACK, after.source);
        assertEquals(1, lines.count("has expired"));
    }

    /** The reader sleeps until the next request or the end of the validity. */
    @Test
    void sleepsUntilWhatIsNext() {
        onAnswer(modified(1.0, 60_000));
        state.decide(now);
        assertEquals(100, msToNext());
        pass(10_000);
        state.decide(now);
        request();
        assertEquals(5_000, msToNext());
        state.onAnswer(Answer.failed("no"), now);
        assertEquals(500, msToNext());
        request();
        pass(46_500);
        assertEquals(3_000, msToNext());
    }

    /** A request without an answer or a failure long after its deadline is lost, and another follows. */
    @Test
    void asksAgainAfterALostRequest() {
        onAnswer(modified(1.0, 60_000));
        state.decide(now);
        pass(10_000);
        state.decide(now);
        assertEquals(ReaderState.WAIT_S, request().waitS);
        pass(14_999);
        assertNull(state.nextRequest(now));
        assertEquals(0, state.failures());
        // The reader looks often enough.
        assertTrue(msToNext() <= 5_000);
        pass(1);

        assertNull(state.nextRequest(now));
        assertEquals(1, state.failures());
        assertEquals(100, msToRequest());
    }

    /** A 304 renews the validity from its arrival on, and has the leak. */
    @Test
    void isRenewed() {
        onAnswer(modified(0.0, 1000));
        state.decide(now);
        pass(900);
        request();
        long at = now;
        pass(500);
        state.onAnswer(Answer.notModified(1000, new Leak(0.5, 8000), at), now);

        Factors renewed = state.decide(now);
        assertEquals(0.0, renewed.global);
        assertEquals(0.5, renewed.leak.share);
        assertEquals(500, state.ageMs(now));
        pass(500);
        assertEquals(Source.SIDECAR, decided().source);
        pass(1);
        assertEquals(Source.FALLBACK, state.decide(now).source);
    }

    /** A failed request changes nothing. It is counted, and logged once. */
    @Test
    void survivesFailures() {
        onAnswer(modified(0.0, 60_000));
        state.decide(now);
        for (int round = 0; round < 20; round++) {
            pass(1000);
            request();
            state.onAnswer(Answer.failed("factor is 7.0"), now);
        }

        assertEquals(0.0, decided().global);
        assertEquals(20, state.failures());
        assertEquals(1, lines.count("factor is 7.0"), lines.toString());
        assertEquals(1, lines.count("is valid for another 59 s, then the fallback 0.25"));
        onAnswer(Answer.notModified(60_000, Leak.WHOLE, now));
        assertEquals(1, lines.count("answers again, after 20 failures in 19 s"), lines.toString());
    }

    /**
     * A limit type that this jar does not know counts as a failed request: the last document applies
     * until it expires, and then the fallback. The fault lasts until an answer can be used again.
     */
    @Test
    void reportsALimitOfALaterVersion() {
        onAnswer(modified(0.0, 20_000));
        state.decide(now);
        // By then, nothing changes by time alone any more.
        pass(10_000);
        state.decide(now);
        for (int round = 0; round < 5; round++) {
            pass(1000);
            request();
            state.onAnswer(
                    Answer.failed(WrongAnswer.ofLaterVersion("limit is of the type x")), now);
            // The factors are applied once more, at once, so that the fault is reported.
            assertEquals(round == 0, state.decide(now) != null);
            assertEquals("outdated", faults.worst());
        }
        assertEquals(5, state.failures());
        assertEquals(1, lines.count("limit is of the type x"), lines.toString());
        assertEquals(0.0, decided().global);
        pass(10_000);
        assertEquals(Source.FALLBACK, state.decide(now).source);

        onAnswer(modified(0.0, 10_000));
        assertEquals("none", faults.worst());
    }

    /** A renewed document is applied again for its leak, and logged once. */
    @Test
    void logsChangesOnly() {
        onAnswer(modified(0.0, 60_000));
        assertNotNull(state.decide(now));
        assertNull(state.decide(now));
        for (int round = 0; round < 5; round++) {
            pass(10_000);
            Leak leak = new Leak(1.0 / (1 + round), 4000);
            onAnswer(Answer.notModified(60_000, leak, now));
            assertEquals(leak.share, state.decide(now).leak.share);
            assertNull(state.decide(now));
        }
        assertEquals(1, lines.count("multiplied by 0.0"), lines.toString());
        onAnswer(modified(1.0, 60_000));
        state.decide(now);

        assertEquals(1, lines.count("I: Produce quotas are multiplied by 1.0"), lines.toString());
    }

    /** Each step of a budget is applied, and its beginning, pause and end are logged. */
    @Test
    void appliesEachStepOfABudget() {
        onAnswer(modified(1.0, 60_000));
        state.decide(now);
        for (double factor : new double[] {0.5, 0.45, 0.0, 1.0}) {
            Document next = document(1.0, Map.of(), 60_000);
            if (factor < 1.0) {
                next.budgets = new Budgets(Map.of("etl", factor), Map.of("raw", "etl"));
            }
            onAnswer(Answer.modified(next, TAG, now));
            assertEquals(next.budgets, state.decide(now).budgets);
            assertNull(state.decide(now));
        }
        assertEquals(1, lines.count("W: Clients that write to topics of etl are slowed"));
        assertEquals(1, lines.count("W: Clients that write to topics of etl are paused"));
        assertEquals(1, lines.count("I: Clients that write to topics of etl are no longer slowed"));
    }

    /** A budget that only another sidecar knows ends with the validity of its answer. */
    @Test
    void aBudgetEndsWithItsAnswer() {
        state.adoptOthers(1);
        Document other = document(1.0, Map.of(), 20_000);
        other.budgets = new Budgets(Map.of("etl", 0.5), Map.of("raw", "etl"));
        state.onOther(0, Answer.modified(other, TAG, now));
        onAnswer(modified(1.0, 60_000));
        assertEquals(other.budgets, state.decide(now).budgets);
        pass(20_001);
        assertEquals(Budgets.NONE, state.decide(now).budgets);
    }

    /** A user is throttled while any sidecar's answer throttles it, whichever observation is younger. */
    @Test
    void aUserIsThrottledByAnySidecar() {
        state.adoptOthers(1);
        for (long age : new long[] {1_000, 50_000}) {
            Answer own = Answer.modified(document(1.0, Map.of("ann", 0.0, "bob", 0.5), 60_000), TAG, now);
            own.observedMsAgo = 20_000;
            onAnswer(own);
            Answer other = Answer.modified(document(1.0, Map.of("bob", 0.25), 60_000), TAG, now);
            other.observedMsAgo = age;
            state.onOther(0, other);
            assertEquals(Map.of("ann", 0.0, "bob", 0.25), decided().users);
        }
    }

    /** Requests wait longer while no client is throttled, and not at all after a failure. */
    @Test
    void waitsByWhatIsInForce() {
        assertEquals(0, request().waitS);
        state.onAnswer(modified(1.0, 60_000), now);
        state.decide(now);
        assertEquals(ReaderState.WAIT_S, request().waitS);
        state.onAnswer(modified(0.0, 60_000), now);
        state.decide(now);
        assertEquals(ReaderState.WAIT_THROTTLED_S, request().waitS);
        state.onAnswer(Answer.failed("no"), now);
        assertEquals(0, request().waitS);
        state.onAnswer(
                Answer.modified(document(1.0, Map.of("etl", 0.0), 60_000), TAG, now), now);
        state.decide(now);

        ReaderState.Request last = request();
        assertEquals(ReaderState.WAIT_THROTTLED_S, last.waitS);
        assertEquals(TAG, last.etag);
    }

    /** There is a pause between requests, whatever the sidecar answers, and however quickly. */
    @Test
    void breaksBetweenRequests() {
        request();
        state.onAnswer(modified(1.0, 60_000), now);
        assertEquals(100, msToRequest());
        request();
        state.onAnswer(Answer.modified(document(1.0, Map.of(), 60_000), null, now), now);
        assertEquals(1000, msToRequest());
        request();
        state.onAnswer(Answer.failed("no"), now);
        assertEquals(500, msToRequest());
        request();
        pass(12_000);
        state.onAnswer(Answer.failed("slow"), now);

        assertEquals(100, msToRequest());
    }

    /**
     * While the callback is off, there are no requests, and every factor is 1. Switched on, a document
     * counts.
     */
    @Test
    void canBeSwitchedOff() {
        onAnswer(modified(0.0, 60_000));
        state.decide(now);
        state.adopt(settings("http://s:1", false, 0.25), true, now);

        Factors off = state.decide(now);
        assertEquals(Source.DISABLED, off.source);
        assertEquals(1.0, off.global);
        assertNull(state.nextRequest(now));
        pass(30_000);
        state.adopt(settings, true, now);
        assertEquals(0.0, state.decide(now).global);
        assertEquals(TAG, state.nextRequest(now).etag);
    }

    /** The entity tag is not sent to another sidecar. The old document is valid until its end. */
    @Test
    void canTurnToAnotherSidecar() {
        onAnswer(modified(0.0, 60_000));
        state.decide(now);
        state.adopt(settings("http://other:1", true, 1.0), false, now);

        assertEquals(0.0, decided().global);
        assertNull(state.nextRequest(now).etag);
    }

    /** During a release, factors are applied twice a second, and not afterwards. */
    @Test
    void appliesUntilAReleaseIsOver() {
        onAnswer(modified(1.0, 600_000));
        state.decide(now);
        int applied = 0;
        long end = now + TimeUnit.SECONDS.toNanos(60);
        request();
        while (state.nextNanos(now) - end < 0) {
            now = state.nextNanos(now);
            applied += state.decide(now) == null ? 0 : 1;
        }

        assertEquals(12, applied);
    }

    /** Factors that could not be applied are returned again, without another log line. */
    @Test
    void appliesAgain() {
        onAnswer(modified(0.0, 60_000));
        state.decide(now);
        state.applyAgain();

        assertEquals(0.0, state.decide(now).global);
        assertEquals(1, lines.count("multiplied by 0.0"));
    }

    /** A state with a release of 5 s. */
    private static Settings settings(String url, boolean enabled, double fallback) {
        return Settings.of(
                Map.of(
                        Settings.URL, url,
                        Settings.ENABLED, enabled,
                        Settings.FALLBACK, fallback,
                        Settings.RAMP, 1250));
    }

    private Factors decided() {
        state.applyAgain();
        return state.decide(now);
    }

    /** Lets the ticks of a release pass. */
    private void settle() {
        state.decide(now);
    }

    private long msToNext() {
        return TimeUnit.NANOSECONDS.toMillis(state.nextNanos(now) - now);
    }

    private long msToRequest() {
        long from = now;
        while (state.nextRequest(now) == null) {
            pass(1);
        }
        state.adopt(settings, true, now);
        return TimeUnit.NANOSECONDS.toMillis(now - from);
    }

    private ReaderState.Request request() {
        ReaderState.Request request = state.nextRequest(now);
        while (request == null) {
            pass(1);
            request = state.nextRequest(now);
        }
        return request;
    }

    private void onAnswer(Answer answer) {
        long before = now;
        request();
        now = before;
        state.onAnswer(answer, now);
    }

    private Answer modified(double factor, long validForMs) {
        return Answer.modified(document(factor, Map.of(), validForMs), TAG, now);
    }

    private static Document document(double factor, Map<String, Double> users, long validForMs) {
        Document document = new Document();
        document.factor = factor;
        document.users = users;
        document.generation = 1;
        document.validForMs = validForMs;
        document.reason = "why";
        return document;
    }

    private void pass(long millis) {
        now += TimeUnit.MILLISECONDS.toNanos(millis);
    }
}
