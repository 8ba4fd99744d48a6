package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import throttlesidecar.decision.Budgets;
import throttlesidecar.decision.Scope;
import throttlesidecar.volumes.Volume;

/** How documents of factors are read and refused. */
class DocumentReaderTest {

    /** Every known member is read as it was written. */
    @Test
    void readsAll() throws WrongAnswer {
        Document document =
                read(
                        "{\"factor\":0.25,\"source\":\"observation\","
                                + "\"reason\":\"a volume is full\","
                                + "\"users\":{\"etl\":0.5,\"Jörg/1\":0},"
                                + "\"seconds_to_full\":12.5,\"generation\":12,"
                                + "\"valid_for_ms\":299000,\"cluster_id\":\"c\"}");

        assertEquals(0.25, document.factor);
        assertEquals(Map.of("etl", 0.5, "Jörg/1", 0.0), document.users);
        assertEquals(12, document.generation);
        assertEquals(299_000, document.validForMs);
        assertEquals("a volume is full", document.reason);
        assertEquals(Document.Source.OBSERVATION, document.source);
    }

    /** The source of the factor, the stop, and the lines for volumes. */
    @Test
    void readsWhatOwnVolumesNeed() throws WrongAnswer {
        Document document =
                read(
                        "{\"factor\":0,\"source\":\"override\",\"stop\":true,\"valid_for_ms\":1,"
                                + "\"release_margin\":0.02,"
                                + "\"limit\":{\"type\":\"min_available_ratio\",\"value\":0.1,\"x\":[1]},"
                                + "\"stop_line\":null}");
        assertEquals(Document.Source.OPERATOR, document.source);
        assertTrue(document.stops);
        Volume at = new Volume(50, 500);
        Volume above = new Volume(51, 500);
        assertTrue(document.limit.isReached(at, false));
        assertFalse(document.limit.isReached(above, false));
        assertTrue(document.limit.isReached(above, true));
        assertFalse(document.limit.isReached(new Volume(61, 500), true));
        assertNull(document.stopLine);
        Document none = read("{\"factor\":1,\"valid_for_ms\":1,\"limit\":null,\"source\":\"fallback\"}");
        assertNull(none.limit);
        assertEquals(Document.Source.NONE, none.source);
        Document later = read("{\"factor\":1,\"valid_for_ms\":1,\"source\":\"of a later version\"}");
        assertEquals(Document.Source.NONE, later.source);
        assertThrows(WrongAnswer.class, () -> read("{\"factor\":1,\"valid_for_ms\":1,\"stop\":1}"));
    }

    /** A limit type that this jar does not know makes the document invalid: the jar must be updated. */
    @ParameterizedTest
    @ValueSource(strings = {"limit", "stop_line"})
    void refusesALimitOfALaterVersion(String member) {
        WrongAnswer wrong =
                assertThrows(
                        WrongAnswer.class,
                        () -> read("{\"factor\":1,\"valid_for_ms\":1,\""
                                + member
                                + "\":{\"type\":\"max_growth\",\"value\":1}}"));

        assertTrue(wrong.isOfLaterVersion);
        assertEquals(
                member + " is of the type max_growth, which this jar does not know: update the jar,"
                        + " which is older than the sidecar",
                wrong.getMessage());
    }

    /** Two members are enough; the others have defaults. */
    @Test
    void needsOnlyFactorAndValidity() throws WrongAnswer {
        Document document = read("{\"valid_for_ms\":0,\"factor\":1}");

        assertEquals(1.0, document.factor);
        assertEquals(Map.of(), document.users);
        assertEquals(0, document.generation);
        assertEquals("", document.reason);
    }

    /** Unknown members, such as those of a newer sidecar, are ignored, even nested ones. */
    @Test
    void ignoresUnknownMembers() throws WrongAnswer {
        String further = "\"dirs\":[{\"id\":1,\"x\":[\"a\",null]}],\"x\":{\"factor\":9},\"y\":7";
        Document document = read("{" + further + ",\"factor\":0.5,\"valid_for_ms\":1}");

        assertEquals(0.5, document.factor);
    }

    /** One invalid member makes the document invalid, and the message names the member. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"factor\":7,\"valid_for_ms\":1} | factor is 7.0",
                "{\"factor\":1.0000001,\"valid_for_ms\":1} | factor is 1.0000001",
                "{\"factor\":-0.1,\"valid_for_ms\":1} | factor is -0.1",
                "{\"factor\":1e999,\"valid_for_ms\":1} | factor is Infinity",
                "{\"factor\":NaN,\"valid_for_ms\":1} | not JSON",
                "{\"factor\":\"1.0\",\"valid_for_ms\":1} | factor is not a number",
                "{\"factor\":null,\"valid_for_ms\":1} | factor is not a number",
                "{\"factor\":true,\"valid_for_ms\":1} | factor is not a number",
                "{\"factor\":[1],\"valid_for_ms\":1} | factor is not a number",
                "{\"valid_for_ms\":1} | factor is missing",
                "{\"factor\":1} | valid_for_ms is missing",
                "{\"factor\":1,\"valid_for_ms\":-1} | valid_for_ms is -1",
                "{\"factor\":1,\"valid_for_ms\":1.5} | valid_for_ms is not a whole number",
                "{\"factor\":1,\"valid_for_ms\":null} | valid_for_ms is not a whole number",
                "{\"factor\":1,\"valid_for_ms\":1,\"users\":[]} | users is no object",
                "{\"factor\":1,\"valid_for_ms\":1,\"users\":null} | users is no object",
                "{\"factor\":1,\"valid_for_ms\":1,\"users\":{\"a\":2}} | of a user is 2.0",
                "{\"factor\":1,\"valid_for_ms\":1,\"users\":{\"a\":null}} | of a user is not",
                "{\"factor\":1,\"valid_for_ms\":1,\"users\":{\"\":1}} | name of 0 characters",
                "{\"factor\":1,\"valid_for_ms\":1,\"generation\":-1} | generation is -1",
                "{\"factor\":1,\"valid_for_ms\":1,\"limit\":5} | limit is neither an object nor null",
                "{\"factor\":1,\"valid_for_ms\":1,\"limit\":{\"value\":5}} | limit is of the type ,",
                "{\"factor\":1,\"valid_for_ms\":1,\"limit\":{\"type\":\"min_available_bytes\"}} | limit has no",
                "{\"factor\":1,\"factor\":0,\"valid_for_ms\":1} | Duplicate field",
                "{\"factor\":1,\"valid_for_ms\":1} {} | something after",
                "{\"factor\":1,\"valid_for_ms\":1 | not JSON",
                "[{\"factor\":1,\"valid_for_ms\":1}] | no JSON object",
                "<html> | not JSON",
                "`` | no JSON object",
                "1.0 | no JSON object",
            })
    void refuses(String body, String problem) {
        WrongAnswer wrong = assertThrows(WrongAnswer.class, () -> read(body));

        assertTrue(wrong.getMessage().contains(problem), wrong.getMessage());
    }

    /** No body takes a broker more than a moment. */
    @ParameterizedTest
    @ValueSource(strings = {"[", "{\"a\":", "9", "\"a", "\u0000", "{\"factor\":1,\"a\":["})
    void refusesTheHugeAtOnce(String part) {
        String parts = part.repeat(4_000_000 / part.length());
        String deep = "{\"factor\":1,\"valid_for_ms\":1,\"x\":" + parts;
        String number = "{\"valid_for_ms\":1,\"factor\":" + "9".repeat(4_000_000) + "}";

        assertTimeoutPreemptively(
                Duration.ofSeconds(2),
                () -> {
                    assertThrows(WrongAnswer.class, () -> read(deep));
                    assertThrows(WrongAnswer.class, () -> read(number));
                });
    }

    /** The message names the depth, not the missing end of the document. */
    @Test
    void refusesTheDeepForItsDepth() {
        String deep = "{\"factor\":1,\"valid_for_ms\":1,\"x\":" + "[".repeat(100);

        WrongAnswer wrong = assertThrows(WrongAnswer.class, () -> read(deep));

        assertTrue(wrong.getMessage().contains("nested"), wrong.getMessage());
    }

    /** A factor of 100 digits is refused, whatever its value. */
    @Test
    void refusesNumbersOfManyDigits() {
        String zeros = "0".repeat(100);
        String body = "{\"factor\":1." + zeros + ",\"valid_for_ms\":1}";

        assertThrows(WrongAnswer.class, () -> read(body));
    }

    /** The largest allowed number of users is accepted, and one more is refused. */
    @Test
    void boundsTheUsers() throws WrongAnswer {
        int most = DocumentReader.MOST_USERS;

        assertEquals(most, read(withUsers(most)).users.size());
        assertThrows(WrongAnswer.class, () -> read(withUsers(most + 1)));
    }

    /** A very long validity is cut to a year, so that sums do not overflow. */
    @Test
    void boundsTheValidity() throws WrongAnswer {
        assertEquals(
                DocumentReader.LONGEST_VALIDITY_MS,
                read("{\"factor\":1,\"valid_for_ms\":99999999999999999999999}").validForMs);
    }

    /** Bytes that are not UTF-8 are refused as not JSON. */
    @Test
    void refusesWhatIsNoText() {
        String text = "{\"factor\":1,\"valid_for_ms\":1,\"reason\":\"?\"}";
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        body[body.length - 3] = (byte) 0xFF;

        assertThrows(WrongAnswer.class, () -> DocumentReader.read(body));
    }

    /** A text of the sidecar can't imitate a line of the broker's log. */
    @Test
    void makesOneLineOfTheReason() throws WrongAnswer {
        String reason = "full\\n[2026-01-01] ERROR \\u001b[31m\\u2028x\\u202e";

        Document document = read("{\"factor\":0,\"valid_for_ms\":1,\"reason\":\"" + reason + "\"}");

        assertEquals("full [2026-01-01] ERROR  [31m x ", document.reason);
    }

    private static String withUsers(int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> "\"user" + i + "\":0.5")
                .collect(
                        Collectors.joining(
                                ",", "{\"factor\":1,\"valid_for_ms\":1,\"users\":{", "}}"));
    }

    private static Document read(String body) throws WrongAnswer {
        return DocumentReader.read(body.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Without topics, as from an older sidecar, the scope is all requests. An invalid list is an error.
     */
    @Test
    void readsTheScope() throws Exception {
        assertTrue(readWith("").scope.isAll());
        assertTrue(readWith(",\"topics\":null").scope.isAll());
        assertEquals(Scope.of(Set.of("a", "b")), readWith(",\"topics\":[\"a\",\"b\"]").scope);
        assertEquals(Scope.of(Set.of()), readWith(",\"topics\":[]").scope);
        assertTrue(readWith(",\"scope\":\"volume\"").isOfVolumes);
        assertFalse(readWith(",\"scope\":\"cluster\"").isOfVolumes);
        for (String wrong : List.of("7", "\"a\"", "[7]", "[[\"a\"]]", "{}")) {
            assertThrows(WrongAnswer.class, () -> readWith(",\"topics\":" + wrong), wrong);
        }
    }

    /** Without budgets, as from an older sidecar, no owner is past one. An invalid member is an error. */
    @Test
    void readsBudgets() throws Exception {
        assertEquals(Budgets.NONE, readWith("").budgets);
        Budgets read = readWith(",\"budgets\":[{\"owner\":\"etl\",\"factor\":0.5,\"new\":{},"
                + "\"topics\":[\"a\",\"b\"]},{\"owner\":\"web\",\"factor\":0,\"topics\":[]}]").budgets;
        assertEquals(
                new Budgets(Map.of("etl", 0.5, "web", 0.0), Map.of("a", "etl", "b", "etl")), read);
        for (String wrong : List.of(
                "7", "{}", "[7]", "[{}]", "[{\"owner\":\"a\"}]", "[{\"factor\":0.5}]",
                "[{\"owner\":\"a\",\"factor\":2}]",
                "[{\"owner\":\"a\",\"factor\":0,\"topics\":[7]}]")) {
            assertThrows(WrongAnswer.class, () -> readWith(",\"budgets\":" + wrong), wrong);
        }
    }

    private static Document readWith(String members) throws WrongAnswer {
        return read("{\"factor\":0.0,\"valid_for_ms\":9" + members + "}");
    }
}
