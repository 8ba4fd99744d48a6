package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Factors.Source;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.Journal;
import throttlesidecar.observability.Lines;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;

/** The reader with servers that answer, hang, fail, stop and start. */
class SidecarReaderTest {
    private static final String TAG = "ETag: \"a\"\r\n";

    private final Lines lines = new Lines();
    private final BlockingQueue<Factors> applied = new LinkedBlockingQueue<>();
    private SidecarReader reader;

    @AfterEach
    void close() {
        if (reader != null) {
            reader.close();
        }
    }

    /** The sidecar's first document and its next change are applied at once. */
    @Test
    void appliesDocuments() throws Exception {
        CountDownLatch change = new CountDownLatch(1);
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            if (requests.getAndIncrement() == 0) {
                                out.write(document("1.0", 60_000));
                            } else {
                                change.await();
                                out.write(document("0.0", 60_000));
                            }
                        })) {
            follow(server);
            assertEquals(Source.FALLBACK, next().source);
            assertEquals(1.0, next(Source.SIDECAR).global);
            long before = System.nanoTime();
            change.countDown();

            assertEquals(0.0, next(Source.SIDECAR).global);
            assertTrue(msSince(before) < 5000, msSince(before) + " ms");
            assertTrue(header(server.heads.get(1), "prefer").contains("wait=10"));
            assertTrue(header(server.heads.get(1), "throttle-reader").contains("broker=1"));
        }
    }

    /** The validity ends in time, even while the sidecar hangs. */
    @Test
    void endsTheValidityDuringAHang() throws Exception {
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            if (requests.getAndIncrement() == 0) {
                                out.write(document("0.0", 700));
                            } else {
                                Thread.sleep(60_000);
                            }
                        })) {
            follow(server);
            next(Source.SIDECAR);
            long before = System.nanoTime();
            Factors after = next(Source.FALLBACK);

            assertEquals(0.25, after.global);
            assertTrue(msSince(before) >= 600 && msSince(before) < 5000, msSince(before) + " ms");
        }
    }

    /** A restarted sidecar's decision applies, and its failure is logged once. */
    @Test
    void followsASidecarThatIsBack() throws Exception {
        int port;
        try (RawServer server = new RawServer((head, out) -> out.write(document("0.0", 700)))) {
            port = server.port();
            follow(server);
            next(Source.SIDECAR);
        }
        next(Source.FALLBACK);
        long before = System.nanoTime();
        try (RawServer server = new RawServer(port, (head, out) -> out.write(document("0.0", 9)))) {
            next(Source.SIDECAR);

            assertTrue(msSince(before) < 5000, msSince(before) + " ms");
            assertTrue(server.heads.size() > 0);
        }
        assertEquals(1, lines.count("W: The request to the sidecar"), lines.toString());
        assertEquals(1, lines.count("answers again"), lines.toString());
    }

    /** Switched off, no client is throttled at once, even while an answer is outstanding. */
    @Test
    void isSwitchedOffAtOnce() throws Exception {
        CountDownLatch hanging = new CountDownLatch(1);
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            if (requests.getAndIncrement() != 1) {
                                out.write(document("0.0", 60_000));
                            } else {
                                hanging.countDown();
                                Thread.sleep(60_000);
                            }
                        })) {
            SidecarClient first = follow(server);
            next(Source.SIDECAR);
            assertTrue(hanging.await(5, TimeUnit.SECONDS));
            long before = System.nanoTime();
            reader.adopt(settings(false), List.of(client(server)), true);

            assertEquals(1.0, next(Source.DISABLED).global);
            assertTrue(msSince(before) < 5000, msSince(before) + " ms");
            assertTrue(first.request(null, 0, Map.of()).isFailure());
            Thread.sleep(700);
            assertEquals(2, requests.get());
            assertEquals(0, reader.failures());
            reader.adopt(settings(true), List.of(client(server)), true);
            assertEquals(0.0, next(Source.SIDECAR).global);
        }
    }

    /** Whatever a hostile server answers, the last document stays valid, with one log line. */
    @Test
    void isNotMovedByHostileAnswers() throws Exception {
        AtomicInteger requests = new AtomicInteger();
        List<byte[]> hostile =
                List.of(
                        document("7", 60_000), document("NaN", 60_000),
                        RawServer.http("200 OK", "", "<html>"),
                        RawServer.http("302 Found", "Location: /v1/quota-factors\r\n", ""),
                        new byte[0]);
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            int request = requests.getAndIncrement();
                            out.write(
                                    request == 0
                                            ? document("0.0", 60_000)
                                            : hostile.get((request - 1) % hostile.size()));
                        })) {
            follow(server);
            next(Source.SIDECAR);
            while (requests.get() < 7) {
                Thread.sleep(10);
            }

            applied.forEach(factors -> assertEquals(0.0, factors.global));
            assertTrue(reader.failures() >= 5, reader.failures() + " failures");
            assertEquals(1, lines.count("W: The request to the sidecar"), lines.toString());
        }
    }

    /** An error while factors are applied is logged once, and the factors are applied again. */
    @Test
    void survivesFaults() throws Exception {
        AtomicInteger calls = new AtomicInteger();
        Consumer<Factors> faulty =
                factors -> {
                    if (calls.incrementAndGet() <= 3) {
                        throw new IllegalStateException("a fault");
                    }
                    applied.add(factors);
                };
        try (RawServer server =
                new RawServer((head, out) -> out.write(document("0.0", 60_000)))) {
            follow(server, faulty);

            assertEquals(0.0, next(Source.SIDECAR).global);
            assertEquals(1, lines.count("a fault"), lines.toString());
        }
    }

    /** Where the heap is full, not even a note can be made; afterwards the reader goes on. */
    @Test
    void survivesAFullHeap() throws Exception {
        AtomicBoolean isFull = new AtomicBoolean();
        AtomicInteger failed = new AtomicInteger();
        Runnable allocate = () -> {
            if (isFull.get()) {
                failed.incrementAndGet();
                throw new OutOfMemoryError("Java heap space");
            }
        };
        Journal journal = new Journal() {
            @Override
            public void info(String line) {
                lines.info(line);
            }

            @Override
            public void warn(String line) {
                allocate.run();
                lines.warn(line);
            }
        };
        Consumer<Factors> apply = factors -> {
            allocate.run();
            applied.add(factors);
        };
        try (RawServer server = new RawServer((head, out) -> out.write(document("0.0", 60_000)))) {
            follow(client(server), apply, Map::of, journal);
            next(Source.SIDECAR);
            isFull.set(true);
            long before = System.nanoTime();
            while (failed.get() < 4 && msSince(before) < 5000) {
                Thread.sleep(10);
            }
            isFull.set(false);
            applied.clear();

            assertEquals(0.0, next(Source.SIDECAR).global);
        }
    }

    /** A request whose report can't be made has failed, and the next one follows. */
    @Test
    void asksAgainAfterAnErrorInItsReport() throws Exception {
        AtomicInteger reports = new AtomicInteger();
        Supplier<Map<String, String>> report = () -> {
            if (reports.incrementAndGet() == 1) {
                throw new OutOfMemoryError("Java heap space");
            }
            return Map.of();
        };
        try (RawServer server = new RawServer((head, out) -> out.write(document("0.0", 60_000)))) {
            follow(client(server), applied::add, report, lines);

            assertEquals(0.0, next(Source.SIDECAR).global);
            assertEquals(1, reader.failures());
        }
    }

    /** Changed settings are adopted even while no document can be applied. */
    @Test
    void isSwitchedOffDuringAFaultThatLasts() throws Exception {
        Consumer<Factors> faulty =
                factors -> {
                    if (factors.source != Source.DISABLED) {
                        throw new IllegalStateException("a fault");
                    }
                    applied.add(factors);
                };
        try (RawServer server =
                new RawServer((head, out) -> out.write(document("0.0", 60_000)))) {
            follow(server, faulty);
            Thread.sleep(100);
            reader.adopt(settings(false), List.of(client(server)), true);

            assertEquals(1.0, next(Source.DISABLED).global);
            assertEquals(1, lines.count("a fault"), lines.toString());
        }
    }

    /** A closed reader applies nothing more, and its threads and its connection end. */
    @Test
    void ends() throws Exception {
        CountDownLatch hanging = new CountDownLatch(1);
        try (RawServer server =
                new RawServer(
                        (head, out) -> {
                            hanging.countDown();
                            Thread.sleep(60_000);
                        })) {
            follow(
                    new SidecarClient(server.url(), null, null, Clocks.SYSTEM, 60_000),
                    applied::add);
            assertTrue(hanging.await(5, TimeUnit.SECONDS));
            assertEquals(2, threads());
            // By then, only a message wakes the reader.
            Thread.sleep(1100);
            long before = System.nanoTime();
            reader.close();
            while (threads() > 0 && msSince(before) < 5000) {
                Thread.sleep(5);
            }
            assertEquals(0, threads());
        }
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("throttle-sidecar-"))
                .filter(Thread::isAlive)
                .count();
    }

    private SidecarClient follow(RawServer server) {
        return follow(server, applied::add);
    }

    private SidecarClient follow(RawServer server, Consumer<Factors> apply) {
        return follow(client(server), apply);
    }

    private SidecarClient follow(SidecarClient client, Consumer<Factors> apply) {
        Map<String, String> report =
                Map.of("Throttle-Reader", "broker=1; emergency=false; throttled_clients=0");
        return follow(client, apply, () -> report, lines);
    }

    private SidecarClient follow(
            SidecarClient client, Consumer<Factors> apply, Supplier<Map<String, String>> report,
            Journal journal) {
        reader =
                new SidecarReader(
                        settings(true), List.of(client), apply, report, Map.of(), new Faults(),
                        Clocks.SYSTEM, journal);
        reader.start();
        return client;
    }

    private static Settings settings(boolean enabled) {
        return Settings.of(
                Map.of(
                        Settings.URL, "http://the-sidecar:1",
                        Settings.ENABLED, enabled,
                        Settings.FALLBACK, 0.25,
                        Settings.RAMP, 0));
    }

    private static SidecarClient client(RawServer server) {
        return new SidecarClient(server.url(), null, null, Clocks.SYSTEM, 400);
    }

    private Factors next() throws InterruptedException {
        Factors factors = applied.poll(5, TimeUnit.SECONDS);
        assertFalse(factors == null, () -> "nothing was applied; " + lines);
        return factors;
    }

    private Factors next(Source source) throws InterruptedException {
        Factors factors = next();
        while (factors.source != source) {
            factors = next();
        }
        return factors;
    }

    private static byte[] document(String factor, long validForMs) throws IOException {
        String body = String.format("{\"factor\":%s,\"valid_for_ms\":%d}", factor, validForMs);
        return RawServer.http("200 OK", TAG, body);
    }

    private static String header(List<String> head, String name) {
        return head.stream()
                .filter(line -> line.toLowerCase(Locale.ROOT).startsWith(name + ":"))
                .findFirst()
                .orElse("");
    }

    private static long msSince(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos);
    }
}
