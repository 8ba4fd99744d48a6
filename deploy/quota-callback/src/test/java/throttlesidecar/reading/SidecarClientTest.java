package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;

/** Which answers are used, and that no answer harms a broker. */
class SidecarClientTest {
    private static final long TIMEOUT_MS = 20_000;

    /** The timeout of a request that misses its deadline. */
    private static final long SHORT_MS = 400;
    private static final Map<String, String> REPORT = Map.of("Throttle-Reader", "broker=1");
    private static final String GOOD = "{\"factor\":0.5,\"generation\":3,\"valid_for_ms\":299000}";

    /** A document has its entity tag, and the first request has no wait. */
    @Test
    void receivesADocument() throws Exception {
        byte[] bytes = RawServer.http("200 OK", "ETag: \"a-3\"\r\n", GOOD);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            Answer answer = request(server.url(), null, 0);

            assertNull(answer.failure);
            assertEquals(0.5, answer.document.factor);
            assertEquals("\"a-3\"", answer.etag);
            assertEquals("GET /v1/quota-factors HTTP/1.1", server.heads.get(0).get(0));
            assertFalse(hasHeader(server, "prefer:"));
            assertFalse(hasHeader(server, "upgrade:"));
        }
    }

    /** A request has the last document's tag, the wait and the report. A 304 renews the document. */
    @Test
    void receivesNotModified() throws Exception {
        byte[] bytes =
                RawServer.http(
                        "304 Not Modified",
                        "Throttle-Valid-For-Ms: 298000\r\nThrottle-Leak-Share: 0.25\r\n"
                                + "Throttle-Pause-Max-Ms: 16000\r\n",
                        "");
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            Answer answer = request(server.url(), "\"a-3\"", 7);

            assertNull(answer.failure);
            assertNull(answer.document);
            assertEquals(298_000, answer.validForMs);
            assertEquals(0.25, answer.leak.share);
            assertEquals(16_000, answer.leak.pauseMaxMs(Settings.of(Map.of())));
            assertTrue(hasHeader(server, "if-none-match: \"a-3\""));
            assertTrue(hasHeader(server, "prefer: wait=7"));
            assertTrue(hasHeader(server, "throttle-reader: broker=1"));
        }
    }

    /** HTTP answers that can't be used are refused, each with its reason. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "200 OK | `` | {\"factor\":7,\"valid_for_ms\":1} | factor is 7.0",
                "200 OK | `` | <html> | not JSON",
                "304 Not Modified | `` | `` | Throttle-Valid-For-Ms is missing",
                "304 Not Modified | Throttle-Valid-For-Ms: -1 | `` | Throttle-Valid-For-Ms",
                "304 Not Modified | Throttle-Valid-For-Ms: 1e9 | `` | Throttle-Valid-For-Ms",
                "302 Found | Location: /v1/other | `` | redirects are not followed",
                "401 Unauthorized | `` | {} | token.file",
                "404 Not Found | `` | {} | /v1/quota-factors",
                "503 Service Unavailable | `` | {\"factor\":1} | HTTP status 503",
                "206 Partial Content | `` | {\"factor\":1,\"valid_for_ms\":1} | HTTP status 206",
            })
    void refuses(String status, String header, String body, String problem) throws Exception {
        byte[] bytes = RawServer.http(status, header.isEmpty() ? "" : header + "\r\n", body);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            Answer answer = request(server.url(), "\"a\"", 0);

            assertTrue(answer.isFailure());
            assertTrue(answer.failure.contains(problem), answer.failure);
            assertEquals(1, server.heads.size());
        }
    }

    /** An invalid leak makes the answer invalid, with or without a document. */
    @ParameterizedTest
    @CsvSource({
        "-1, 4000", "NaN, 4000", "Infinity, 4000", "1e400, 4000", "0x1p3, 4000", "soon, 4000",
        "0.1, -1", "0.1, 4e3", "0.1, 4.0", "0.1, ", ", 4000",
    })
    void refusesALeak(String share, String pauseMs) throws Exception {
        String headers =
                "Throttle-Valid-For-Ms: 1000\r\n"
                        + (share == null ? "" : "Throttle-Leak-Share: " + share + "\r\n")
                        + (pauseMs == null ? "" : "Throttle-Pause-Max-Ms: " + pauseMs + "\r\n");
        for (String status : List.of("200 OK", "304 Not Modified")) {
            String body = status.startsWith("2") ? "{\"factor\":1,\"valid_for_ms\":1}" : "";
            byte[] bytes = RawServer.http(status, headers, body);
            try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
                String failure = request(server.url(), "\"a\"", 0).failure;
                assertTrue(failure.contains("is missing or no number"), failure);
            }
        }
    }

    /** A 304 to a request without a tag renews nothing. */
    @Test
    void refusesAnUnrequested304() throws Exception {
        byte[] bytes = RawServer.http("304 Not Modified", "Throttle-Valid-For-Ms: 9\r\n", "");
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            assertTrue(request(server.url(), null, 0).failure.contains("HTTP status 304"));
        }
    }

    /** An entity tag that can't be sent back is ignored. */
    @ParameterizedTest
    @ValueSource(strings = {"a-3", "\"a", "\"a b\"", ""})
    void ignoresStrangeEntityTags(String tag) throws Exception {
        byte[] bytes = RawServer.http("200 OK", "ETag: " + tag + "\r\n", GOOD);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            Answer answer = request(server.url(), null, 0);

            assertNull(answer.failure);
            assertNull(answer.etag);
        }
    }

    /** If a body does not end, reading stops at 4 MiB, and the connection is closed. */
    @Test
    void leavesAHugeBody() throws Exception {
        byte[] block = " ".repeat(1 << 16).getBytes(StandardCharsets.US_ASCII);
        AtomicInteger blocks = new AtomicInteger();
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            out.write(head("Content-Length: 99999999999"));
                            while (true) {
                                out.write(block);
                                blocks.incrementAndGet();
                            }
                        })) {
            Answer answer = request(server.url(), null, 5);

            assertTrue(answer.failure.contains("more than 4194304 bytes"), answer.failure);
            await(server.broken);
            assertTrue(blocks.get() < 1000, blocks + " blocks");
        }
    }

    /** If a head does not end, reading stops too. */
    @Test
    void leavesAHugeHead() throws Exception {
        byte[] block = ("X: " + "x".repeat(60_000) + "\r\n").getBytes(StandardCharsets.US_ASCII);
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            out.write("HTTP/1.1 200 OK\r\n".getBytes(StandardCharsets.US_ASCII));
                            while (true) {
                                out.write(block);
                            }
                        })) {
            assertTrue(request(server.url(), null, 0).isFailure());
            await(server.broken);
        }
    }

    /** An answer that arrives byte by byte fails by its deadline, in each of its parts. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void leavesASlowDrip(boolean head) throws Exception {
        try (RawServer server = new RawServer((request, out) -> drip(head, out))) {
            SidecarClient client =
                    new SidecarClient(server.url(), null, null, Clocks.SYSTEM, SHORT_MS);
            Answer answer = client.request(null, 0, REPORT);

            assertTrue(answer.failure.contains("within 400 ms"), answer.failure);
            await(server.broken);
        }
    }

    private static void drip(boolean inHead, OutputStream out)
            throws IOException, InterruptedException {
        out.write(inHead ? "HTTP/1.1 200 OK\r\nX: ".getBytes() : head("Content-Length: 9999"));
        while (true) {
            out.write('x');
            out.flush();
            Thread.sleep(20);
        }
    }

    /** An answer that is not HTTP, too short or empty is refused. */
    @ParameterizedTest
    @ValueSource(strings = {"", "SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"})
    void refusesWhatIsCutOff(String answer) throws Exception {
        byte[] bytes = answer.getBytes(StandardCharsets.US_ASCII);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            assertTrue(request(server.url(), null, 0).isFailure());
        }
    }

    /** A refused connection fails at once. */
    @Test
    void failsWhereNobodyListens() throws Exception {
        // The port is bound without listening, so no other program uses it.
        try (Socket taken = new Socket()) {
            taken.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            URI nobody = URI.create("http://127.0.0.1:" + taken.getLocalPort());

            Answer answer = request(nobody, null, 5);

            assertTrue(answer.failure.contains("refused"), answer.failure);
        }
    }

    /** If a name has several addresses, the first one that answers is used. */
    @Test
    void triesEachAddress() throws Exception {
        byte[] bytes = RawServer.http("200 OK", "", GOOD);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            // The server listens at only one of the loopback's addresses.
            InetAddress nobody = InetAddress.getByName("127.0.0.2");
            InetAddress[] both = {nobody, InetAddress.getLoopbackAddress()};

            assertNull(named(server, TIMEOUT_MS, host -> both).request(null, 0, REPORT).failure);
            Answer none =
                    named(server, TIMEOUT_MS, host -> new InetAddress[] {nobody, nobody})
                            .request(null, 0, REPORT);
            assertTrue(none.failure.contains("refused"), none.failure);
        }
    }

    /** If the first addresses of a name hang, a later request reaches the next one. */
    @Test
    void reachesTheAddressAfterTwoThatHang() throws Exception {
        byte[] bytes = RawServer.http("200 OK", "", GOOD);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes));
                ServerSocket full = new ServerSocket()) {
            InetAddress hangs = InetAddress.getByName("127.0.0.2");
            full.bind(new InetSocketAddress(hangs, server.port()), 1);
            List<Socket> queued = new ArrayList<>();
            // Linux takes one more than the backlog, and then answers no connection.
            for (int each = 0; each < 2; each++) {
                queued.add(new Socket(hangs, server.port()));
            }
            InetAddress[] three = {hangs, hangs, InetAddress.getLoopbackAddress()};
            SidecarClient client = named(server, 1_500, host -> three);

            assertTrue(client.request(null, 0, REPORT).isFailure());
            assertNull(client.request(null, 0, REPORT).failure);
            assertNull(client.request(null, 0, REPORT).failure);
            for (Socket socket : queued) {
                socket.close();
            }
        }
    }

    /** A request ends even while another plugin of the broker blocks the JVM's thread of time-outs. */
    @Test
    void endsWithoutTheThreadOfTimeouts() throws Exception {
        CountDownLatch blocked = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        CompletableFuture.delayedExecutor(0, TimeUnit.MILLISECONDS, Runnable::run).execute(() -> {
            blocked.countDown();
            try {
                ended.await();
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        });
        assertTrue(blocked.await(5, TimeUnit.SECONDS));
        try (RawServer server = new RawServer((head, out) -> Thread.sleep(60_000))) {
            SidecarClient client = new SidecarClient(server.url(), null, null, Clocks.SYSTEM, SHORT_MS);
            CompletableFuture<Answer> answer =
                    CompletableFuture.supplyAsync(() -> client.request(null, 0, REPORT));
            assertTrue(answer.get(10, TimeUnit.SECONDS).isFailure());
        } finally {
            ended.countDown();
        }
    }

    /** If the resolver hangs, a request fails by its deadline, and all requests share one thread. */
    @Test
    void waitsForNoResolver() throws Exception {
        CountDownLatch resolves = new CountDownLatch(1);
        AtomicInteger lookUps = new AtomicInteger();
        byte[] bytes = RawServer.http("200 OK", "", GOOD);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            SidecarClient client = named(server, SHORT_MS, host -> {
                lookUps.incrementAndGet();
                try {
                    resolves.await();
                } catch (InterruptedException never) {
                    throw new UnknownHostException(host);
                }
                return new InetAddress[] {InetAddress.getLoopbackAddress()};
            });
            for (int request = 0; request < 2; request++) {
                Answer answer = client.request(null, 0, REPORT);
                assertTrue(answer.failure.contains("no address"), answer.failure);
            }
            assertEquals(1, lookUps.get());
            resolves.countDown();

            assertNull(client.request(null, 0, REPORT).failure);
        }
    }

    /** The JVM's proxy is not used, since it would see the token. */
    @Test
    void usesNoProxy() throws Exception {
        byte[] bytes = RawServer.http("200 OK", "", GOOD);
        String[] keys = {"socksProxyHost", "socksProxyPort", "socksNonProxyHosts"};
        try (RawServer server = new RawServer((head, out) -> out.write(bytes));
                RawServer proxy = new RawServer((head, out) -> {})) {
            String[] values = {"127.0.0.1", Integer.toString(proxy.port()), ""};
            for (int key = 0; key < keys.length; key++) {
                System.setProperty(keys[key], values[key]);
            }
            assertNull(request(server.url(), null, 0).failure);
        } finally {
            for (String key : keys) {
                System.clearProperty(key);
            }
        }
    }

    private static SidecarClient named(
            RawServer server, long timeoutMs, SidecarClient.Resolver resolver) {
        URI url = URI.create("http://sidecar.test:" + server.port());
        return new SidecarClient(url, null, null, Clocks.SYSTEM, timeoutMs, resolver);
    }

    /** Closing ends the current request and its connection. */
    @Test
    void canBeClosed() throws Exception {
        CountDownLatch requested = new CountDownLatch(1);
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            requested.countDown();
                            while (true) {
                                Thread.sleep(20);
                                out.write("HTTP/1.1 100 Continue\r\n\r\n".getBytes());
                            }
                        })) {
            SidecarClient client = client(server.url(), null);
            CompletableFuture<Answer> answer =
                    CompletableFuture.supplyAsync(() -> client.request("\"a\"", 30, REPORT));
            assertTrue(requested.await(5, TimeUnit.SECONDS));
            client.close();

            assertTrue(answer.get(1, TimeUnit.SECONDS).isFailure());
            await(server.broken);
            assertTrue(client.request(null, 0, Map.of()).isFailure());
            assertEquals(1, server.heads.size());
        }
    }

    /** The token is read for each request, and no failure shows it. */
    @Test
    void sendsTheToken(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("token");
        byte[] bytes = RawServer.http("200 OK", "", GOOD);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            SidecarClient client = client(server.url(), file);
            assertTrue(client.request(null, 0, Map.of()).failure.contains("can't be read"));
            Files.writeString(file, "first\n");
            assertNull(client.request(null, 0, Map.of()).failure);
            Files.writeString(file, "second");
            assertNull(client.request(null, 0, Map.of()).failure);
            Files.writeString(file, "hidden\nhidden");
            String failure = client.request(null, 0, Map.of()).failure;

            assertEquals(
                    List.of("Bearer first", "Bearer second"),
                    List.of(token(server, 0), token(server, 1)));
            assertEquals(2, server.heads.size());
            assertTrue(failure.contains("contains no bearer token"), failure);
            assertFalse(failure.contains("hidden"), failure);
        }
    }

    /** A token file that hangs, as on a dead file server, is a failure by the deadline. */
    @Test
    void aTokenFileThatHangsIsAFailure(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("token");
        assertEquals(0, new ProcessBuilder("mkfifo", file.toString()).start().waitFor());
        byte[] bytes = RawServer.http("200 OK", "", GOOD);
        try (RawServer server = new RawServer((head, out) -> out.write(bytes))) {
            SidecarClient client =
                    new SidecarClient(server.url(), null, file, Clocks.SYSTEM, SHORT_MS);
            CompletableFuture<Answer> first =
                    CompletableFuture.supplyAsync(() -> client.request(null, 0, REPORT));
            String failure = first.get(10, TimeUnit.SECONDS).failure;
            assertTrue(failure.contains("token file"), failure);
            // The read that hung ends.
            Files.write(file, "secret".getBytes(StandardCharsets.US_ASCII));
            Files.delete(file);
            Files.writeString(file, "secret");
            assertNull(client.request(null, 0, REPORT).failure);
        }
    }

    private static String token(RawServer server, int request) {
        return server.heads.get(request).stream()
                .filter(line -> line.startsWith("Authorization: "))
                .map(line -> line.substring("Authorization: ".length()))
                .findFirst()
                .orElse("none");
    }

    private static boolean hasHeader(RawServer server, String start) {
        return server.heads.get(0).stream()
                .anyMatch(line -> line.toLowerCase(Locale.ROOT).startsWith(start));
    }

    private static byte[] head(String header) {
        return ("HTTP/1.1 200 OK\r\n" + header + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII);
    }

    private static SidecarClient client(URI url, Path tokenFile) {
        return new SidecarClient(url, null, tokenFile, Clocks.SYSTEM, TIMEOUT_MS);
    }

    private static Answer request(URI url, String etag, int waitS) {
        return client(url, null).request(etag, waitS, REPORT);
    }

    /** Waits until the server has noticed the closed connection. */
    private static void await(AtomicInteger broken) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (broken.get() == 0 && System.nanoTime() < deadline) {
            Thread.sleep(5);
        }
        assertTrue(broken.get() > 0, "the connection is still open");
    }
}
