package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.management.InstanceNotFoundException;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import throttlesidecar.observability.Lines;
import throttlesidecar.reading.TlsFilesTest;
import throttlesidecar.reading.DocumentFile;
import throttlesidecar.reading.RawServer;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.throttling.TagSets;

/** The callback, which Kafka makes, calls, reconfigures and closes. All callbacks share one runtime. */
class SidecarQuotaCallbackTest extends ReadingBroker {
    private final SidecarQuotaCallback controller = new SidecarQuotaCallback();

    @AfterEach
    void closeController() {
        controller.close();
    }

    /** JMX shows the current factor, and each request has the broker's report. */
    @Test
    void showsWhatIsInForce() throws Exception {
        broker.configure(configs);
        await("FactorApplied", 0.0);

        assertEquals("SIDECAR", figure("Source"));
        assertEquals(3L, figure("Generation"));
        assertEquals(true, figure("Enabled"));
        assertEquals("THROTTLED", figure("Regime"));
        assertEquals(0, figure("TagSetsThrottled"));
        assertEquals(false, figure("Emergency"));
        assertEquals(0L, figure("LongestPauseMs"));
        assertEquals(0L, figure("PauseInForceMs"));
        assertEquals(0L, figure("Failures"));
        assertEquals("none", figure("Fault"));
        assertTrue((long) figure("DocumentAgeMs") >= 0);
        String reader = "throttle-reader: broker=7; emergency=false; throttled_clients=0";
        assertTrue(hasHeader(0, reader));
    }

    /** Log dirs whose reads hang are a fault, which is logged at once, and again if it returns. */
    @Test
    void reportsAHangingDisk() {
        Lines lines = new Lines();
        CallbackRuntime runtime = LoneRuntime.of(
                Settings.of(Map.of()), new Connections(1), RefusalLog.ofBroker(), new MovedClocks(), lines);
        for (int hang = 1; hang <= 2; hang++) {
            runtime.hanging(Set.of());
            assertEquals("none", runtime.enforcement.faults().worst());
            runtime.hanging(Set.of("/a"));
            runtime.hanging(Set.of("/a"));
            assertEquals("disk-hangs", runtime.enforcement.faults().worst());
            assertEquals(hang, lines.count("reads of /a do not return). Check the disk"));
        }
    }

    /** In combined mode there is one reader and one set of figures, until both callbacks are closed. */
    @Test
    void sharesOneStore() throws Exception {
        broker.configure(configs);
        controller.configure(configs);
        await("FactorApplied", 0.0);
        assertEquals(1, followers());
        broker.close();
        broker.close();
        assertEquals(1, followers());
        assertEquals(0.0, figure("FactorApplied"));
        controller.close();

        assertEquals(0, followers());
        assertThrows(InstanceNotFoundException.class, () -> figure("FactorApplied"));
        assertNull(TagSets.SHARED.enforcement());
    }

    /** The sidecar is told the broker's id, whatever its length. */
    @Test
    void reportsALongId() throws Exception {
        configs.put("node.id", "2147483647");
        broker.configure(configs);
        await("FactorApplied", 0.0);
        assertTrue(
                sidecar.heads.get(0).stream()
                        .anyMatch(line -> line.startsWith("Throttle-Reader: broker=2147483647;")));
    }

    /** After a close, another callback starts anew, as when a test restarts a broker in its JVM. */
    @Test
    void startsAnew() throws Exception {
        broker.configure(configs);
        await("FactorApplied", 0.0);
        broker.close();
        factor = "1.0";
        broker.configure(configs);
        await("Source", "SIDECAR");

        assertEquals(1.0, figure("FactorApplied"));
    }

    /** An invalid setting stops the start, and leaves nothing behind. */
    @Test
    void refusesWrongSettings() {
        configs.put(P + "fallback", "7");
        ConfigException refused =
                assertThrows(ConfigException.class, () -> broker.configure(configs));
        assertTrue(refused.getMessage().contains(P + "fallback"), refused.getMessage());
        configs.put(P + "fallback", "1.0");
        configs.put(P + "url", "https://127.0.0.1:1");
        configs.put(P + "ssl.ca.file", "/none.pem");
        refused = assertThrows(ConfigException.class, () -> broker.configure(configs));
        assertTrue(refused.getMessage().contains("/none.pem"), refused.getMessage());

        assertEquals(0, followers());
        broker.close();
    }

    /** When kafka-configs.sh switches the callback off and on, the factor ends and applies at once. */
    @Test
    void isSwitchedOffAndOn() throws Exception {
        broker.configure(configs);
        await("FactorApplied", 0.0);
        reconfigure("enabled", "false");
        long before = System.nanoTime();
        await("FactorApplied", 1.0);
        assertTrue(System.nanoTime() - before < TimeUnit.MILLISECONDS.toNanos(500));
        assertEquals("DISABLED", figure("Source"));
        assertEquals("FREE", figure("Regime"));
        assertEquals(false, figure("Enabled"));
        reconfigure("enabled", "true");

        await("FactorApplied", 0.0);
    }

    /** If levels share tags, a released user has one pace during its ramp. */
    @Test
    void aUsersTagsAreItsOwnDuringItsRamp() throws Exception {
        factor = "1.0";
        users = "{\"ann\":0.0}";
        broker.configure(configs);
        await("Generation", users.length() + 1L);
        assertEquals(Map.of("user", "ann", "client-id", "app"), produceTags());
        users = "{}";
        await("Generation", 3L);
        assertEquals(Map.of("user", "ann", "client-id", "app"), produceTags());
    }

    /** Without a ramp, the user has the levels' tags at once. */
    @Test
    void aUsersTagsAreTheLevelsAfterItsThrottle() throws Exception {
        factor = "1.0";
        users = "{\"ann\":0.0}";
        configs.put(P + "ramp.ms", "0");
        broker.configure(configs);
        await("Generation", users.length() + 1L);
        users = "{}";
        await("Generation", 3L);
        // JMX shows the new factor a moment before the tags change.
        await(() -> Map.of("user", "", "client-id", "app").equals(produceTags()));
    }

    /**
     * If one of the broker's own volumes is too full, the broker throttles, whatever the sidecar decides.
     * It does so from the start on without a sidecar, since the limits are on the broker's disk.
     */
    @Test
    void throttlesByItsOwnVolumes(@TempDir Path folder) throws Exception {
        factor = "1.0";
        more = ",\"limit\":{\"type\":\"min_available_ratio\",\"value\":1.0}";
        configs.put("log.dirs", folder.toString());
        broker.configure(configs);
        await("Source", "LOCAL");
        assertEquals(0.0, figure("FactorApplied"));
        awaitDocumentIn(folder);
        broker.close();
        sidecar.close();
        broker.configure(configs);
        await("Source", "LOCAL");
        assertTrue((long) figure("LimitsAgeMs") >= 0);

        reconfigure("enabled", "false");
        await("Source", "DISABLED");
    }

    /** The last document applies until the sidecar answers. */
    @Test
    void startsWithTheLastFactor(@TempDir Path folder) throws Exception {
        configs.put("log.dirs", folder.toString());
        broker.configure(configs);
        await("FactorApplied", 0.0);
        awaitDocumentIn(folder);
        broker.close();
        sidecar.close();
        broker.configure(configs);
        await("FactorApplied", 0.0);
        assertEquals("SIDECAR", figure("Source"));
    }

    /** The document is written after its factor applies. */
    private static void awaitDocumentIn(Path folder) throws InterruptedException {
        await(() -> Files.exists(folder.resolve(DocumentFile.NAME)));
    }

    /** If the broker's own sidecar is dead, another sidecar's decision counts. */
    @Test
    void asksOthers() throws Exception {
        byte[] bytes =
                RawServer.http(
                        "200 OK", "ETag: \"o\"\r\n", "{\"factor\":0.0,\"valid_for_ms\":60000}");
        try (RawServer other = new RawServer((head, out) -> out.write(bytes))) {
            sidecar.close();
            configs.put(P + "url", sidecar.url() + "," + other.url());
            broker.configure(configs);
            await("FactorApplied", 0.0);
            assertEquals("SIDECAR", figure("Source"));
            List<String> head = other.heads.get(0);
            assertTrue(head.contains("Throttle-Broker: 7"), "the other sidecar knows which broker asks for its leak");
            assertTrue(head.stream().noneMatch(line -> line.startsWith("Throttle-Reader")));
            reconfigure("enabled", "false");
            await(() -> threads("throttle-sidecar-others") == 0);
        }
    }

    private Map<String, String> produceTags() {
        return broker.quotaMetricTags(ClientQuotaType.PRODUCE, ANN, "app");
    }

    /** The callback can be switched off despite a missing file or contradictory settings. */
    @Test
    void isSwitchedOffWithWrongSettings() throws Exception {
        broker.configure(configs);
        await("FactorApplied", 0.0);
        configs.put(P + "url", "https://127.0.0.1:1");
        configs.put(P + "ssl.ca.file", "/none.pem");
        configs.put(P + "pause.emergency.max.ms", "3999");
        reconfigure("enabled", "false");
        await("FactorApplied", 1.0);

        configs.put(P + "enabled", "true");
        assertThrows(ConfigException.class, () -> broker.validateReconfiguration(configs));
    }

    /** If the file of authorities in use is deleted, other settings can still be changed. */
    @Test
    void takesChangesWithoutTheFileOfAuthorities(@TempDir Path folder) throws Exception {
        TlsFilesTest.keytool(folder, "ca", "dns:localhost");
        Path file = folder.resolve("ca.pem");
        configs.put(P + "url", "https://127.0.0.1:1");
        configs.put(P + "ssl.ca.file", file.toString());
        broker.configure(configs);
        Files.delete(file);
        reconfigure("fallback", "0.0");
        await("FactorApplied", 0.0);

        configs.put(P + "ssl.ca.file", "/none.pem");
        assertThrows(ConfigException.class, () -> broker.validateReconfiguration(configs));
    }

    /** Properties can be checked without a broker, as when an operator moves from another plugin. */
    @Test
    void checksBeforeItIsConfigured() {
        broker.validateReconfiguration(configs);
        configs.put(P + "pause.max.ms", "4s");
        assertThrows(ConfigException.class, () -> broker.validateReconfiguration(configs));
    }

    /** An invalid change is refused before anything changes. */
    @Test
    void refusesWrongChanges() {
        broker.configure(configs);
        configs.put(P + "pause.max.ms", "4s");
        assertThrows(ConfigException.class, () -> broker.validateReconfiguration(configs));
        configs.put(P + "pause.max.ms", "4000");
        configs.put(P + "url", "https://127.0.0.1:1");
        configs.put(P + "ssl.ca.file", "/none.pem");

        assertThrows(ConfigException.class, () -> broker.validateReconfiguration(configs));
        assertTrue(broker.reconfigurableConfigs().contains(P + "enabled"));
    }

    /** Each callback renews changed static quotas once. TagSetConfig computes those of PRODUCE. */
    @Test
    void renewsLimitsOnce() {
        broker.configure(configs);
        controller.configure(configs);
        for (ClientQuotaType type : ClientQuotaType.values()) {
            assertFalse(broker.quotaResetRequired(type));
        }
        assertEquals(
                "(no quota)", broker.quotaMetricTags(ClientQuotaType.FETCH, ANN, "app").get("user"));
        reconfigure("fetch", "1000");
        assertEquals(
                Map.of("user", "", "client-id", ""),
                broker.quotaMetricTags(ClientQuotaType.FETCH, ANN, "app"));
        assertEquals(
                1000.0,
                broker.quotaLimit(ClientQuotaType.FETCH, Map.of("user", "", "client-id", "")));

        for (SidecarQuotaCallback each : new SidecarQuotaCallback[] {broker, controller}) {
            assertTrue(each.quotaResetRequired(ClientQuotaType.FETCH));
            assertFalse(each.quotaResetRequired(ClientQuotaType.FETCH));
            assertTrue(each.quotaResetRequired(ClientQuotaType.REQUEST));
            assertFalse(each.quotaResetRequired(ClientQuotaType.PRODUCE));
        }
        assertFalse(broker.updateClusterMetadata(null));
    }

    /** Requests in progress when the broker closes still get their tags. */
    @Test
    void answersAfterItsEnd() {
        broker.configure(configs);
        broker.close();

        assertNotNull(broker.quotaMetricTags(ClientQuotaType.PRODUCE, ANN, "app"));
    }
}
