package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** How an answer of HTTP/1.1 is parsed, without a connection. */
class HttpAnswerTest {

    /** A body is read up to its length, its last chunk, or the end of the connection. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "Content-Length: 7\r\n\r\n{\"a\":1}and more",
                "\r\n{\"a\":1}",
                "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\n\r\n",
                "content-length:7\r\nCONTENT-LENGTH:7\r\n\r\n{\"a\":1}",
                "Content-Length: 7\n\n{\"a\":1}",
            })
    void readsABody(String rest) throws Exception {
        byte[] body = read("HTTP/1.1 200 OK\r\n" + rest).body;

        assertEquals("{\"a\":1}", new String(body, StandardCharsets.UTF_8));
    }

    /** Interim answers are skipped, with their headers. */
    @Test
    void passesOverInterimAnswers() throws Exception {
        String interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
        HttpAnswer answer = read(interim + "HTTP/1.0 304\r\nETag: \"a\"\r\n\r\n");

        assertEquals(304, answer.status);
        assertEquals("\"a\"", answer.header("etag"));
        assertNull(answer.header("link"));
    }

    /** The body of an answer other than 200 is not read, whatever its length. */
    @Test
    void leavesOtherBodies() throws Exception {
        HttpAnswer answer = read("HTTP/1.1 503 no\r\nContent-Length: 99999999999\r\n\r\nxyz");

        assertEquals(503, answer.status);
        assertEquals(0, answer.body.length);
    }

    /** An answer that does not parse is refused with a reason. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "`` | ends too early",
                "SSH-2.0-x~ | is not HTTP",
                "HTTP/2 200~~ | is not HTTP",
                "HTTP/1.1 20~~ | is not HTTP",
                "HTTP/1.1 200 OK~no colon~~ | a header can't be read",
                "HTTP/1.1 200 OK~a: b~ c~~ | a header can't be read",
                "HTTP/1.1 200 OK~Content-Length: 1~Content-Length: 2~~ab | several headers",
                "HTTP/1.1 304 x~ETag: 1~ETag: 2~~ | several headers",
                "HTTP/1.1 304 x~Throttle-Valid-For-Ms: 1~Throttle-Valid-For-Ms: 2~~ | several",
                "HTTP/1.1 200 OK~Content-Length: -1~~ | no number",
                "HTTP/1.1 200 OK~Content-Length: 9999999999999999999~~ | no number",
                "HTTP/1.1 200 OK~Content-Length: 4194305~~ | more than 4194304",
                "HTTP/1.1 200 OK~Content-Length: 3~~ab | ends too early",
                "HTTP/1.1 200 OK~Content-Encoding: gzip~~ab | encoded",
                "HTTP/1.1 200 OK~Transfer-Encoding: gzip, chunked~~ | length",
                "HTTP/1.1 200 OK~Transfer-Encoding: chunked~Content-Length: 1~~1~a~0~~ | length",
                "HTTP/1.1 200 OK~Transfer-Encoding: chunked~~-1~ | chunk can't be read",
                "HTTP/1.1 200 OK~Transfer-Encoding: chunked~~1~ab~0~~ | longer than its size",
                "HTTP/1.1 200 OK~Transfer-Encoding: chunked~~ffffffff~ | more than 4194304",
                "HTTP/1.1 200 OK~Transfer-Encoding: chunked~~5~ab | ends too early",
            })
    void refuses(String text, String problem) {
        String bytes = text.replace("~", "\r\n");
        WrongAnswer wrong = assertThrows(WrongAnswer.class, () -> read(bytes));

        assertTrue(wrong.getMessage().contains(problem), wrong.getMessage());
    }

    /** If heads, chunks or interim answers do not end, the reader stops after its limit. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "HTTP/1.1 200 OK\r\n|x",
                "HTTP/1.1 200 OK\r\n|a: b\r\n",
                "|HTTP/1.1 100 Continue\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n|1\r\na\r\n",
                "HTTP/1.1 200 OK\r\n\r\n|x",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n|100\r\n" + X256 + "\r\n",
            })
    void leavesTheEndless(String pattern) {
        String[] parts = pattern.split("\\|");
        Endless in = new Endless(parts[0], parts[1]);
        WrongAnswer wrong = assertThrows(WrongAnswer.class, () -> HttpAnswer.read(in));

        assertTrue(wrong.getMessage().contains("more than"), wrong.getMessage());
        assertTrue(in.read <= HttpAnswer.MOST_HEAD + HttpAnswer.MOST_BODY + 1000, "" + in.read);
    }

    private static final String X16 = "xxxxxxxxxxxxxxxx";
    private static final String X64 = X16 + X16 + X16 + X16;
    private static final String X256 = X64 + X64 + X64 + X64;

    /** A claimed length takes no memory before its bytes arrive. */
    @Test
    void believesNoLength() throws Exception {
        String text = "HTTP/1.1 200 OK\r\nContent-Length: 4194304\r\n\r\n";
        long before = allocated();
        for (int i = 0; i < 100; i++) {
            assertThrows(WrongAnswer.class, () -> read(text));
        }

        assertTrue(allocated() - before < 100L * 256 * 1024, allocated() - before + " bytes");
    }

    private static long allocated() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        return threads.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    /** After any change, a good answer is parsed or refused, without any other exception. */
    @Test
    void standsAnyDamage() throws IOException {
        String good =
                "HTTP/1.1 200 OK\r\nETag: \"a-3\"\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + "1A\r\n{\"factor\":0,\"valid_for_ms\":\r\n2\r\n1}\r\n0\r\n\r\n";
        Random random = new Random(4);
        int refused = 0;
        for (int round = 0; round < 20_000; round++) {
            byte[] bytes = good.getBytes(StandardCharsets.ISO_8859_1);
            for (int change = random.nextInt(4); change >= 0; change--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
            }
            try {
                Document document =
                        DocumentReader.read(
                                HttpAnswer.read(new ByteArrayInputStream(bytes)).body);
                assertTrue(document.factor >= 0 && document.factor <= 1);
            } catch (WrongAnswer expected) {
                refused++;
            }
        }

        assertTrue(refused > 1000 && refused < 20_000, refused + " refused");
    }

    private static HttpAnswer read(String text) throws IOException, WrongAnswer {
        byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        return HttpAnswer.read(new ByteArrayInputStream(bytes));
    }

    /** A stream with a start, and then one part repeated without an end. */
    private static final class Endless extends InputStream {
        private final String start;
        private final String part;
        private long read;

        Endless(String start, String part) {
            this.start = start;
            this.part = part;
        }

        @Override
        public int read() {
            long at = read++;
            return at < start.length()
                    ? start.charAt((int) at)
                    : part.charAt((int) ((at - start.length()) % part.length()));
        }
    }
}
