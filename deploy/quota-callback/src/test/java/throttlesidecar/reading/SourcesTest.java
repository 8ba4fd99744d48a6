package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Factors.Source;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.Lines;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.volumes.OwnVolumePoller;
import throttlesidecar.volumes.OwnVolumes;
import throttlesidecar.volumes.Volume;
import throttlesidecar.volumes.VolumeLine;

/** The sources of a broker without its own sidecar: other sidecars, its own volumes, its disk. */
class SourcesTest {
    private static final long START = 1_000_000_000_000L;
    private static final VolumeLine LIMIT = new VolumeLine(false, 100, 0.0);
    private static final VolumeLine STOP = new VolumeLine(true, 0.05, 0.0);

    private final Lines lines = new Lines();
    private final MovedClocks clocks = new MovedClocks();
    private final ReaderState state =
            new ReaderState(Settings.of(Map.of(Settings.URL, "http://s:1", Settings.RAMP, 0)),
                    new Faults(), lines, START);
    private long now = START;

    private static Document document(String source, double factor) {
        return document(source, factor, 300_000);
    }

    private static Document document(String source, double factor, long validForMs) {
        // A sidecar that is switched off or in observe mode has no limit.
        String lines =
                List.of("disabled", "shadow").contains(source)
                        ? "\"limit\":null,\"stop_line\":null"
                        : "\"limit\":{\"type\":\"min_available_bytes\",\"value\":100},"
                                + "\"stop_line\":{\"type\":\"min_available_ratio\",\"value\":0.05}";
        String json =
                String.format(
                        "{\"factor\":%s,\"source\":\"%s\",\"valid_for_ms\":%d,\"reason\":\"%s\",%s}",
                        factor, source, validForMs, source, lines);
        try {
            return DocumentReader.read(json.getBytes(StandardCharsets.UTF_8));
        } catch (WrongAnswer wrong) {
            throw new AssertionError(wrong);
        }
    }

    private Answer says(String source, double factor, long ageMs) {
        return modified(document(source, factor), "\"t\"", Leak.WHOLE, ageMs);
    }

    private Answer modified(Document document, String etag, Leak leak, long observedMsAgo) {
        Answer answer = Answer.modified(document, etag, now);
        answer.leak = leak;
        answer.observedMsAgo = observedMsAgo;
        return answer;
    }

    private static Answer limitIn(long ms, Answer answer) {
        answer.limitInMs = ms;
        return answer;
    }

    private static Answer factor(double factor, Answer answer) {
        answer.factor = factor;
        return answer;
    }

    private void own(Answer answer) {
        while (state.nextRequest(now) == null) {
            pass(10);
        }
        state.onAnswer(answer, now);
    }

    private Factors decided() {
        state.applyAgain();
        return state.decide(now);
    }

    private void pass(long millis) {
        now += TimeUnit.MILLISECONDS.toNanos(millis);
    }

    private static Map<String, Volume> readings(long available) {
        return Map.of("/a", new Volume(900, 1000), "/b", volume(available));
    }

    private static Volume volume(long available) {
        return new Volume(available, 1000);
    }

    /** A fallback or an override of another sidecar replaces neither a dead sidecar's answer nor the readings. */
    @Test
    void whoSeesNothingEndsNoWord() {
        state.adoptOthers(1);
        for (String source : List.of("fallback", "override", "disabled", "shadow")) {
            own(says("observation", 0.0, 0));
            state.onOther(0, says(source, 1.0, 0));
            own(Answer.failed("dead"));
            assertEquals(0.0, decided().global, source);
            own(says("observation", 1.0, 0));
            own(Answer.failed("dead"));
            state.onReadings(readings(100));
            assertEquals(Source.LOCAL, decided().source, source);
            pass(300_001);
            state.onOther(0, says(source, 1.0, 0));
            assertEquals(Source.LOCAL, decided().source, source);
            state.onReadings(readings(101));
            assertEquals(Source.SIDECAR, decided().source, source);
        }
    }

    /** An observation with a violation counts, even beside a younger observation without one. */
    @Test
    void anyViolationCounts() {
        state.adoptOthers(2);
        own(says("observation", 1.0, 0));
        state.onOther(0, says("observation", 0.0, 60_000));
        state.onOther(1, says("observation", 1.0, 0));
        assertEquals(0.0, decided().global);
        state.onOther(0, says("observation", 1.0, 0));
        assertEquals(1.0, decided().global);
    }

    /** The decision of a dead sidecar does not count while others answer. */
    @Test
    void aDeadSidecarsWordEndsWhereOthersAnswer() {
        state.adoptOthers(1);
        own(says("observation", 0.0, 0));
        own(Answer.failed("dead"));
        assertEquals(0.0, decided().global);
        state.onOther(0, says("observation", 1.0, 0));
        assertEquals(1.0, decided().global);
        state.onOther(0, Answer.failed("dead"));
        assertEquals(0.0, decided().global);
        pass(300_000);
        pass(1000);
        assertEquals(Source.FALLBACK, decided().source);
    }

    /**
     * Without a violation, the youngest observation counts. A fallback counts only after all
     * observations.
     */
    @Test
    void theYoungestObservationCounts() {
        state.adoptOthers(2);
        own(says("fallback", 0.5, 0));
        assertEquals(0.5, decided().global);
        state.onOther(0, says("observation", 1.0, 9_000));
        assertEquals(1.0, decided().global);
        state.onOther(1, modified(generation(7), "\"t\"", Leak.WHOLE, 3_000));
        assertEquals(7, decided().generation);
        state.onOther(1, modified(generation(8), "\"t\"", Leak.WHOLE, 9_001));
        assertEquals(0, decided().generation);
    }

    private static Document generation(long generation) {
        Document document = document("observation", 1.0);
        document.generation = generation;
        return document;
    }

    /**
     * The own sidecar decides the leak, whichever sidecar answered last. If the own sidecar is dead, the
     * smallest leak of the others applies. In make chaos SEED=2 the leak changed twice a second.
     */
    @Test
    void theOwnSidecarsLeakCounts() {
        state.adoptOthers(2);
        own(says(new Leak(0.1, 40_000)));
        assertEquals(0.1, state.decide(now).leak.share);
        pass(1000);
        state.onOther(0, says(new Leak(0.05, 80_000)));
        assertEquals(0.1, state.decide(now).leak.share);
        pass(1000);
        state.onOther(1, says(Leak.WHOLE));
        assertEquals(0.1, state.decide(now).leak.share);
        own(Answer.failed("dead"));
        assertEquals(0.05, state.decide(now).leak.share);
        own(says("observation", 1.0, 0));
        assertEquals(0.05, state.decide(now).leak.share, "the sidecar observes no violation");
        state.onOther(0, Answer.failed("dead"));
        assertEquals(1.0, state.decide(now).leak.share);
    }

    /**
     * If no sidecar answers any more, brokers throttle from the moment at which the last answer expected
     * a volume at its limit. In make chaos SEED=3, two brokers filled a volume that only the third reads.
     */
    @Test
    void theLastForecastCountsWhereNobodyAnswers() {
        state.adoptOthers(1);
        own(limitIn(4_000, says("observation", 1.0, 0)));
        state.onOther(0, limitIn(90_000, says("observation", 1.0, 1_000)));
        pass(4_001);
        assertEquals(Source.SIDECAR, decided().source, "both answered within 5 s");
        own(Answer.failed("dead"));
        assertEquals(Source.SIDECAR, decided().source, "the other one answered within 5 s");
        state.onOther(0, Answer.failed("dead"));
        assertEquals(Source.FORECAST, decided().source);
        assertEquals(0.0, decided().global);
        state.onOther(0, says("fallback", 1.0, 0));
        assertEquals(Source.FORECAST, decided().source, "the sidecar has no observation");
        state.onOther(0, says("observation", 1.0, 0));
        assertEquals(Source.SIDECAR, decided().source);
        state.onOther(0, Answer.failed("dead"));
        assertEquals(Source.SIDECAR, decided().source, "no volume was expected at its limit");
    }

    /** A hanging sidecar is silent after 5 s. A forecast lasts no longer than the validity. */
    @Test
    void aForecastEndsWithTheValidity() {
        own(limitIn(2_000, says("observation", 1.0, 0)));
        pass(5_000);
        assertEquals(Source.SIDECAR, decided().source);
        pass(1);
        assertEquals(Source.FORECAST, decided().source);
        pass(294_999);
        assertEquals(Source.FORECAST, decided().source);
        pass(1);
        assertEquals(Source.FALLBACK, decided().source);
    }

    /** An override at the own sidecar counts even if that dies. A full volume is still noticed. */
    @Test
    void anOverrideEndsAForecast() {
        own(limitIn(1_000, says("observation", 1.0, 0)));
        own(Answer.failed("dead"));
        pass(1_000);
        assertEquals(Source.FORECAST, decided().source);
        state.onReadings(readings(100));
        assertEquals(Source.LOCAL, decided().source);
        own(says("override", 1.0, 0));
        own(Answer.failed("dead"));
        assertEquals(1.0, decided().global);
    }

    /** While a volume is close to its limit, the sidecar is not asked to wait for long. */
    @Test
    void aForecastIsKeptFresh() {
        own(limitIn(30_500, says("observation", 1.0, 0)));
        assertEquals(ReaderState.WAIT_S, request().waitS);
        state.onAnswer(limitIn(30_000, says("observation", 1.0, 0)), now);
        assertEquals(ReaderState.WAIT_THROTTLED_S, request().waitS);
    }

    private ReaderState.Request request() {
        ReaderState.Request due = state.nextRequest(now);
        while (due == null) {
            pass(10);
            due = state.nextRequest(now);
        }
        return due;
    }

    private Answer says(Leak leak) {
        return modified(document("observation", 0.0), "\"t\"", leak, 0);
    }

    /** An operator's override at the own sidecar wins over other sidecars and the broker's own volumes. */
    @Test
    void anOverrideLiftsAll() {
        state.adoptOthers(1);
        own(says("override", 1.0, 0));
        state.onOther(0, says("observation", 0.0, 0));
        state.onReadings(readings(0));
        assertEquals(1.0, decided().global);
        own(Answer.failed("dead"));
        assertEquals(1.0, decided().global);
        own(says("disabled", 1.0, 0));
        assertEquals(1.0, decided().global);
    }

    /** One of the broker's own volumes throttles at once, and only while it is at the limit. */
    @Test
    void itsOwnVolumesThrottle() {
        own(says("observation", 1.0, 0));
        state.onReadings(readings(101));
        assertEquals(1.0, decided().global);
        state.onReadings(readings(100));
        assertEquals(0.0, decided().global);
        assertEquals(Source.LOCAL, decided().source);
        assertEquals(1, lines.count("/b of this broker has 100 bytes available of 1000"));
        state.onReadings(readings(101));
        assertEquals(1.0, decided().global);
    }

    /**
     * From the stop line up to a tenth above it, nothing is admitted. The sidecar's stop counts too.
     */
    @Test
    void itsOwnVolumesStop() {
        own(says("observation", 0.0, 0));
        state.onReadings(readings(51));
        assertFalse(decided().admitsNobody);
        state.onReadings(readings(50));
        assertTrue(decided().admitsNobody);
        assertEquals(Source.LOCAL, decided().source);
        state.onReadings(readings(56));
        assertFalse(decided().admitsNobody);
        state.adoptOthers(1);
        Document stop = document("observation", 0.0);
        stop.stops = true;
        state.onOther(0, modified(stop, "\"t\"", Leak.WHOLE, 60_000));
        assertTrue(decided().admitsNobody);
        assertEquals(Source.SIDECAR, decided().source);
        own(says("override", 0.0, 0));
        assertFalse(decided().admitsNobody);
    }

    /**
     * A broker that uses its reserve admits nothing, before any answer and far above every line, until it
     * is made again or an operator overrides. Clients that write to other volumes are not concerned.
     */
    @Test
    void aBrokerOnItsReserveStops() {
        Map<String, Volume> readings = new HashMap<>(readings(900));
        readings.put("/b", new Volume(900, 1000, Scope.of(Set.of("mine")), true));
        state.onReadings(readings);
        assertTrue(decided().admitsNobody);
        assertEquals(Source.LOCAL, decided().source);
        assertEquals(1, lines.count("/b of this broker has 900 bytes available of 1000, since it started from"));
        own(Answer.modified(scoped(1.0), "\"t\"", now));
        assertTrue(state.needsTopics(readings.get("/b")));
        assertTrue(decided().admitsNobody);
        assertEquals(Scope.of(Set.of("mine")), decided().scope);
        own(says("override", 1.0, 0));
        assertEquals(1.0, decided().global);
        own(says("observation", 1.0, 0));
        state.onReadings(readings(900));
        assertEquals(Source.SIDECAR, decided().source);
    }

    private static Document scoped(double factor, String... topics) {
        Document document = document("observation", factor);
        document.isOfVolumes = true;
        document.scope = topics.length == 0 ? Scope.ALL : Scope.of(Set.of(topics));
        return document;
    }

    private static Map<String, Volume> holding(String topic, long available) {
        Scope scope = Scope.of(Set.of(topic));
        return Map.of("/b", new Volume(available, 1000, scope));
    }

    /** Its own full volumes throttle the clients that write to them, besides those that a sidecar throttles. */
    @Test
    void itsOwnVolumesHaveAScope() {
        own(Answer.modified(scoped(1.0), "\"t\"", now));
        state.onReadings(holding("mine", 100));
        assertEquals(Source.LOCAL, decided().source);
        assertEquals(Scope.of(Set.of("mine")), decided().scope);
        own(Answer.modified(scoped(0.0, "theirs"), "\"u\"", now));
        assertEquals(Source.SIDECAR, decided().source);
        assertEquals(Scope.of(Set.of("mine", "theirs")), decided().scope);
        state.onReadings(holding("mine", 101));
        assertEquals(Scope.of(Set.of("theirs")), decided().scope);
        own(Answer.modified(scoped(0.0), "\"v\"", now));
        assertTrue(decided().scope.isAll(), "the topics on the volume are not known");
    }

    /** The topics of each sidecar with a violation count, whichever sidecar observed last. */
    @Test
    void topicsAreOfAllThatSeeAViolation() {
        state.adoptOthers(2);
        own(Answer.modified(scoped(0.0, "a"), "\"t\"", now));
        state.onOther(0, modified(scoped(0.0, "b"), "\"u\"", Leak.WHOLE, 60_000));
        state.onOther(1, modified(scoped(1.0), "\"v\"", Leak.WHOLE, 0));
        assertEquals(Scope.of(Set.of("a", "b")), decided().scope);
    }

    /** All writers of a log dir count if its listing fails, or if the topics do not matter. */
    @Test
    void listsWhatLiesOnItsVolumes() {
        Map<String, String[]> folders = new HashMap<>();
        OwnVolumePoller.Disk disk =
                new OwnVolumePoller.Disk() {
                    @Override
                    public Volume look(String logDir) {
                        return new Volume(1, 2);
                    }

                    @Override
                    public String[] list(String logDir) {
                        return folders.get(logDir);
                    }
                };
        String moves = "d-3.0123456789abcdef0123456789abcdef-future";
        String deleted = "e-0.0123456789abcdef0123456789abcdef-delete";
        folders.put("/a", new String[] {"a-0", "b-c-12", moves, deleted, "meta.properties"});
        boolean[] isAsked = {false};
        List<Map<String, Volume>> seen = new ArrayList<>();
        OwnVolumePoller poller =
                new OwnVolumePoller(List.of("/a", "/b"), disk, volume -> isAsked[0], seen::add, h -> {}, e -> {});
        poller.look();
        assertTrue(seen.get(0).get("/a").scope.isAll());
        isAsked[0] = true;
        poller.look();
        Scope listed = Scope.of(Set.of("a", "b-c", "d"));
        assertEquals(listed, seen.get(1).get("/a").scope);
        assertTrue(seen.get(1).get("/b").scope.isAll());
        folders.put("/a", new String[] {"z-0"});
        poller.look();
        assertEquals(listed, seen.get(2).get("/a").scope, "topics are listed once a second");
        poller.look();
        poller.look();
        assertEquals(Scope.of(Set.of("z")), seen.get(4).get("/a").scope);
    }

    /** Topics are listed only of volumes that are too full, or may still count as such. */
    @Test
    void listsOnlyFullVolumes() throws Exception {
        assertFalse(state.needsTopics(volume(0)), "no limit is known");
        String json = "{\"factor\":1.0,\"valid_for_ms\":300000,\"release_margin\":20,%s"
                + "\"limit\":{\"type\":\"min_available_bytes\",\"value\":100}}";
        own(modified(DocumentReader.read(String.format(json, "").getBytes(StandardCharsets.UTF_8)), "\"t\"", Leak.WHOLE, 0));
        assertFalse(state.needsTopics(volume(0)), "all clients are throttled");
        own(modified(DocumentReader.read(String.format(json, "\"scope\":\"volume\",").getBytes(StandardCharsets.UTF_8)), "\"t\"", Leak.WHOLE, 0));
        assertTrue(state.needsTopics(volume(120)));
        assertFalse(state.needsTopics(volume(121)));
    }

    /**
     * The limits of a document count after its validity has ended, and beside the sidecar's fallback.
     */
    @Test
    void itsOwnVolumesThrottleWithoutASidecar() {
        state.onReadings(readings(0));
        assertEquals(1.0, decided().global);
        own(says("fallback", 1.0, 0));
        assertEquals(Source.LOCAL, decided().source);
        state.remember(document("observation", 1.0), 400_000, now);
        assertEquals(Source.LOCAL, decided().source);
        state.onReadings(readings(500));
        assertEquals(Source.FALLBACK, decided().source);
    }

    /** A stop ends a tenth above the stop line. */
    @Test
    void aStopHasAMargin() {
        OwnVolumes volumes = new OwnVolumes();
        List<Boolean> stops = new ArrayList<>();
        for (long available : new long[] {51, 50, 55, 56, 55, 50}) {
            volumes.take(readings(available));
            assertTrue(volumes.violate(LIMIT));
            stops.add(volumes.stop(STOP));
        }
        assertEquals(List.of(false, true, true, false, false, true), stops);
        assertFalse(volumes.stop(null));
        assertFalse(volumes.violate(null));
        assertFalse(volumes.stop(STOP));
        // The volume has 1,000 bytes. The stop line is at 950, and the limit at 100.
        volumes.take(readings(101));
        assertFalse(volumes.violate(LIMIT));
        assertFalse(volumes.stop(new VolumeLine(true, 0.95, 0.0)));
    }

    /**
     * Between soft limit and limit, the last answer's factor applies, even a 304's, without a log line.
     */
    @Test
    void aFactorOnItsSlopeMoves() throws Exception {
        Document slope =
                DocumentReader.read(
                        "{\"factor\":0.8,\"slope\":true,\"valid_for_ms\":300000}"
                                .getBytes(StandardCharsets.UTF_8));
        assertEquals(Document.Source.SLOPE, slope.source);
        own(factor(0.75, Answer.modified(slope, "\"a\"", now)));
        Factors first = decided();
        assertEquals(0.75, first.global);
        assertTrue(first.isSloped);
        int before = lines.all().size();
        own(factor(0.4, Answer.notModified(300_000, Leak.WHOLE, now)));
        assertEquals(0.4, decided().global);
        own(Answer.notModified(300_000, Leak.WHOLE, now));
        assertEquals(0.8, decided().global);
        assertEquals(before, lines.all().size());
        // Without a slope, only the document's factor counts.
        own(factor(0.4, Answer.modified(document("observation", 1.0), "\"b\"", now)));
        assertEquals(1.0, decided().global);
        assertFalse(decided().isSloped);
        state.onReadings(readings(100));
        own(factor(0.75, Answer.modified(slope, "\"c\"", now)));
        assertEquals(0.75, decided().global);
    }

    /**
     * A throttle by the limit ends once each volume that reached the limit is above it by the margin.
     */
    @Test
    void aLimitMayHaveAMargin() {
        OwnVolumes volumes = new OwnVolumes();
        List<Boolean> violates = new ArrayList<>();
        for (long available : new long[] {101, 100, 120, 121, 120, 100}) {
            volumes.take(readings(available));
            violates.add(volumes.violate(LIMIT.withMargin(20)));
        }
        assertEquals(List.of(false, true, true, false, false, true), violates);
        Volume near = new Volume(110, 1000);
        volumes.take(Map.of("/a", near, "/b", near));
        assertTrue(volumes.violate(LIMIT.withMargin(20)));
        assertEquals("/b of this broker has 110 bytes available of 1000", volumes.reason());
    }

    /** If a log dir can't be read, its last reading stays, so that no throttle is released blindly. */
    @Test
    void theLastReadingRemains() {
        Map<String, Volume> disks = new HashMap<>(Map.of("/a", volume(5)));
        List<Map<String, Volume>> seen = new ArrayList<>();
        OwnVolumePoller poller = new OwnVolumePoller(
                        List.of("/a", "/b"), disks::get, volume -> false, seen::add, h -> {}, e -> {});
        poller.look();
        disks.remove("/a");
        disks.put("/b", volume(7));
        poller.look();
        assertEquals(5, seen.get(1).get("/a").availableBytes);
        assertEquals(7, seen.get(1).get("/b").availableBytes);
    }

    /** A full log dir that Kafka took offline no longer throttles once the sidecar is told to forget it. */
    @Test
    void anOfflineLogDirDoesNotThrottle() {
        Set<String> offline = new HashSet<>();
        OwnVolumePoller.Disk disk =
                new OwnVolumePoller.Disk() {
                    @Override
                    public Volume look(String logDir) {
                        // After ENOSPC the file system is still readable, and still full.
                        return volume(logDir.equals("/a") ? 5 : 900);
                    }

                    @Override
                    public boolean isOffline(String logDir, boolean isReadable) {
                        return offline.contains(logDir);
                    }
                };
        OwnVolumePoller poller =
                new OwnVolumePoller(
                        List.of("/a", "/b"), disk, volume -> false, state::onReadings, h -> {}, e -> {});
        own(says("observation", 0.0, 0));
        poller.look();
        offline.add("/a");
        poller.look();
        assertEquals(0.0, decided().global, "the sidecar counts the offline log dir until it is told to forget it");
        own(says("observation", 1.0, 0));
        assertEquals(1.0, decided().global);
        offline.clear();
        poller.look();
        assertEquals(Source.LOCAL, decided().source, "it is back, and still full");
    }

    /**
     * A disk that hangs keeps the last reading of its own log dir alone, until Kafka takes it offline. A
     * read that does not return is reported, unless its log dir is offline.
     */
    @Test
    void aHangingDiskStopsNoOtherReading() throws Exception {
        Map<String, Volume> disks = new ConcurrentHashMap<>(Map.of("/a", volume(5), "/b", volume(500)));
        Set<String> offline = new HashSet<>();
        AtomicInteger reading = new AtomicInteger();
        CountDownLatch returns = new CountDownLatch(1);
        OwnVolumePoller.Disk disk =
                new OwnVolumePoller.Disk() {
                    @Override
                    public Volume look(String logDir) {
                        if (logDir.equals("/a") && reading.getAndIncrement() > 0) {
                            assertDoesNotThrow(() -> returns.await());
                        }
                        return disks.get(logDir);
                    }

                    @Override
                    public boolean isOffline(String logDir, boolean isReadable) {
                        return offline.contains(logDir);
                    }
                };
        List<Map<String, Volume>> seen = new ArrayList<>();
        List<Set<String>> hanging = new ArrayList<>();
        OwnVolumePoller poller =
                new OwnVolumePoller(
                        List.of("/a", "/b"), disk, volume -> false, seen::add, hanging::add, e -> {});
        poller.look();
        disks.put("/b", volume(20));
        for (int look = 0; look < 21; look++) {
            assertEquals(Set.of(), hanging.get(look));
            poller.look();
            assertEquals(20, seen.get(look + 1).get("/b").availableBytes);
            assertEquals(5, seen.get(look + 1).get("/a").availableBytes);
        }
        assertEquals(Set.of("/a"), hanging.get(21));
        assertEquals(2, reading.get(), "no second read begins before the first has returned");
        offline.add("/a");
        poller.look();
        assertEquals(Set.of("/b"), seen.get(22).keySet());
        assertEquals(Set.of(), hanging.get(22));
        offline.clear();
        disks.put("/a", volume(600));
        returns.countDown();
        while (reading.get() < 4) {
            poller.look();
        }
        assertEquals(600, seen.get(seen.size() - 1).get("/a").availableBytes);
        assertEquals(Set.of(), hanging.get(hanging.size() - 1));
        poller.close();
    }

    /** Kafka's own gauge counts; without one, a log dir that can't be read is offline. */
    @Test
    void kafkaTellsWhichLogDirsAreOffline(@TempDir Path folder) throws Exception {
        OwnVolumePoller.Disk disk = OwnVolumePoller.Disk.SYSTEM;
        assertFalse(disk.isOffline(folder.toString(), true));
        assertTrue(disk.isOffline(folder.resolve("none").toString(), false));
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        for (int value : new int[] {0, 1}) {
            ObjectName name =
                    new ObjectName(
                            "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory="
                                    + ObjectName.quote(folder.toString()));
            server.registerMBean(new StandardMBean((GaugeMBean) () -> value, GaugeMBean.class), name);
            assertEquals(value == 1, disk.isOffline(folder.toString(), value == 1));
            server.unregisterMBean(name);
        }
    }

    /** As of Kafka's own gauges. */
    public interface GaugeMBean {
        Object getValue();
    }

    /** An error ends no reading, and is noted. */
    @Test
    void readsOnAfterAnError() throws Exception {
        CountDownLatch looks = new CountDownLatch(3);
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        OwnVolumePoller.Disk disk = logDir -> {
            looks.countDown();
            throw new OutOfMemoryError("Java heap space");
        };
        OwnVolumePoller poller =
                new OwnVolumePoller(List.of("/a"), disk, volume -> false, seen -> {}, h -> {}, errors::add);
        poller.start();
        assertTrue(looks.await(10, TimeUnit.SECONDS));
        poller.close();
        assertTrue(errors.size() >= 2);
    }

    /** The machine's own disks: the folder of this test, and a folder that does not exist. */
    @Test
    void looksAtRealDisks(@TempDir Path folder) {
        Volume volume = OwnVolumePoller.Disk.SYSTEM.look(folder.toString());
        assertTrue(volume.totalBytes >= volume.availableBytes);
        assertTrue(volume.availableBytes > 0);
        assertNull(OwnVolumePoller.Disk.SYSTEM.look(folder.resolve("none").toString()));
    }

    /** A broker that starts in a throttle is throttled from its first request on. */
    @Test
    void startsWithWhatWasKept(@TempDir Path folder) {
        new DocumentFile(folder, clocks, lines)
                .write(new DocumentFile.Found(document("observation", 0.0, 300_000), 0));
        DocumentFile.Found found = new DocumentFile(folder, clocks, lines).read();
        assertNotNull(found);
        state.remember(found.document, 299_999, now);
        assertEquals(0.0, state.decide(now).global);
        state.remember(found.document, 300_001, now);
        assertEquals(Source.FALLBACK, decided().source);
        assertEquals("", lines.toString().replaceAll("(?m)^.*(multiplied|expired).*$\n?", ""));
    }

    /** The age counts from the last renewal, which is written at most twice a minute. */
    @Test
    void isRenewed(@TempDir Path folder) throws Exception {
        Document document = document("observation", 0.0);
        DocumentFile kept = new DocumentFile(folder, clocks, lines);
        DocumentFile.Found found = new DocumentFile.Found(document, 0);
        kept.write(found);
        Path file = folder.resolve(DocumentFile.NAME);
        clocks.pass(29_999);
        kept.write(found);
        long before = Files.getLastModifiedTime(file).toMillis();
        clocks.pass(1);
        kept.write(found);
        long after = Files.getLastModifiedTime(file).toMillis();
        assertTrue(before != after);
        assertEquals(clocks.nowMs(), after);
        clocks.pass(5_000);
        assertEquals(5_000, new DocumentFile(folder, clocks, lines).read().ageMs);
    }

    /** What a sidecar's later answers say about the validity is not forgotten by a restart. */
    @Test
    void aRestartProlongsNoValidity(@TempDir Path folder) {
        DocumentFile kept = new DocumentFile(folder, clocks, lines);
        own(says("observation", 0.0, 0));
        kept.write(state.documentToKeep(now));
        clocks.pass(60_000);
        pass(60_000);
        own(Answer.notModified(10_000, Leak.WHOLE, now));
        kept.write(state.documentToKeep(now));
        clocks.pass(4_000);
        assertEquals(294_000, new DocumentFile(folder, clocks, lines).read().ageMs);
    }

    /** A file that can't be read or written is logged once, and changes nothing. */
    @Test
    void damageIsNoHarm(@TempDir Path folder) throws Exception {
        assertNull(new DocumentFile(folder, clocks, lines).read());
        Files.writeString(folder.resolve(DocumentFile.NAME), "{\"factor\":");
        assertNull(new DocumentFile(folder, clocks, lines).read());
        assertEquals(1, lines.count("can't be used"));
        DocumentFile nowhere = new DocumentFile(folder.resolve("none"), clocks, lines);
        for (int time = 0; time < 3; time++) {
            nowhere.write(new DocumentFile.Found(document("observation", 0.0), 0));
            clocks.pass(30_000);
        }
        assertEquals(1, lines.count("can't be kept"));
    }
}
