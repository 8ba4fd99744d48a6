package throttlesidecar.settings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every property's default and refusal; a refusal names the property and describes valid values. */
class SettingsTest {
    private static final String P = "client.quota.callback.sidecar.";
    private static final String STATIC = "client.quota.callback.static.";
    private static final Map<String, String> BROKER =
            Map.of(
                    "process.roles", "broker",
                    "metric.reporters",
                    "org.apache.kafka.common.metrics.JmxReporter,"
                            + " throttlesidecar.SidecarMetricsReporter");

    private static Settings with(String key, Object value) {
        return Settings.of(Map.of(key, value));
    }

    /** No topic has a longer name, but a client may ask for one of 32 kB. */
    @Test
    void aTooLongNameIsOfNoTopic() {
        Settings settings = with(P + "excluded.topics", "x*");
        assertTrue(settings.excludesTopic("x".repeat(249)));
        assertFalse(settings.excludesTopic("x".repeat(250)));
    }

    @Test
    void withoutAnyPropertyOfOursTheDefaultsAreThoseOfTheReadme() {
        Settings settings = Settings.atStart(BROKER);
        assertEquals(URI.create("http://127.0.0.1:7070"), settings.url());
        assertTrue(settings.enabled);
        assertEquals(4000, settings.pauseMaxMs);
        assertEquals(300_000, settings.emergencyPauseMaxMs);
        assertEquals(0.01, settings.leakRatio);
        assertTrue(Double.isNaN(settings.leakBytesPerSecond));
        assertEquals(60_000, settings.rampMs);
        assertEquals(1.0, settings.fallback);
        assertNull(settings.staticQuota(ClientQuotaType.PRODUCE));
        assertNull(settings.tokenFile);
        assertNull(settings.caFile);
        assertNull(settings.reserveBytes);
    }

    @ParameterizedTest
    @CsvSource({
        "url, localhost:7070", "url, ftp://a", "url, http://", "url, http://a/b?c", "url, 'http://a b'",
        "url, http://a:0", "url, http://a:65536", "url, http://a#b",
        "enabled, yes", "reserve.bytes, -1", "reserve.bytes, 1g", "pause.max.ms, 0", "pause.max.ms, -1", "pause.max.ms, 4s",
        "pause.max.ms, 86400001",
        "leak.ratio, 1.1", "leak.ratio, -0.1", "leak.ratio, NaN", "leak.bytes.per.second, -1",
        "leak.bytes.per.second, Infinity", "leak.bytes.per.second, much", "ramp.ms, -1",
        "fallback, 2", "fallback, half", "excluded.principals, User:", "produce, 0", "fetch, -1",
        "excluded.principals, 'User:a,User:b'", "excluded.principals, 'User:CN=a,O=x, User:CN=b'",
        "excluded.principals, user:a",
        "request, x", "excluded.clients, User:kafka", "excluded.clients, |a", "excluded.clients, a|",
    })
    void anInvalidValueIsRefusedByItsName(String key, String value) {
        ConfigException refused = assertThrows(ConfigException.class, () -> with(P + key, value));
        assertTrue(refused.getMessage().contains(P + key), refused.getMessage());
    }

    /** The first address is that of the broker's own sidecar; others follow. */
    @Test
    void severalSidecarsCanBeNamed() {
        Settings settings = with(P + "url", "http://127.0.0.1:7070, https://sidecars:7443");
        assertEquals(URI.create("http://127.0.0.1:7070"), settings.url());
        assertEquals(URI.create("https://sidecars:7443"), settings.urls.get(1));
        assertThrows(ConfigException.class, () -> with(P + "url", "http://a,"));
        assertThrows(ConfigException.class, () -> with(P + "url", "http://a,b"));
    }

    @Test
    void logDirsAreThoseOfTheBroker() {
        Settings several = Settings.of(Map.of("log.dirs", "/a, /b", "log.dir", "/c"));
        assertEquals(List.of("/a", "/b"), several.logDirs);
        assertEquals(Path.of("/a"), several.folder());
        assertEquals(List.of("/c"), with("log.dir", "/c").logDirs);
        assertEquals(Path.of("/m"), with("metadata.log.dir", "/m").folder());
        assertNull(Settings.of(Map.of()).folder());
    }

    /** A broker does not start with settings that contradict each other. */
    @ParameterizedTest
    @CsvSource({
        "pause.emergency.max.ms, 3999", "ssl.ca.file, /ca.pem", "ssl.certificate.file, /tls.crt",
        "ssl.key.file, /tls.key", "reserve.bytes, 1"
    })
    void clashesAreRefusedAtTheStart(String key, String value) {
        Map<String, String> configs = new HashMap<>(BROKER);
        configs.put(P + key, value);
        ConfigException refused =
                assertThrows(ConfigException.class, () -> Settings.atStart(configs));
        assertTrue(refused.getMessage().contains(P + key), refused.getMessage());
    }

    /**
     * A cluster's default may contradict a broker's own property. The broker still accepts later
     * changes.
     */
    @Test
    void clashesAreResolvedLater() {
        Settings settings =
                Settings.of(
                        Map.of(
                                P + "pause.max.ms", "60000",
                                P + "pause.emergency.max.ms", "50000",
                                P + "ssl.ca.file", "/ca.pem"));
        assertEquals(60_000, settings.emergencyPauseMaxMs);
        assertNull(settings.caFile);
        assertEquals(2, settings.contradictions().size());
        assertEquals(List.of(), Settings.of(Map.of()).contradictions());
    }

    @ParameterizedTest
    @CsvSource({
        "http://127.0.0.1:7070, true", "http://localhost, true", "http://[::1]:7070, true",
        "https://sidecar, true", "http://sidecar:7070, false", "http://10.0.0.1, false",
    })
    void aTokenInClearTextIsWarnedOf(String url, boolean safe) {
        Settings settings = Settings.of(Map.of(P + "url", url, P + "token.file", "/token"));
        assertEquals(safe, settings.warning() == null, settings.warning());
        assertNull(with(P + "url", url).warning());
    }

    @Test
    void excludedClientsAreUsersWithTheirClientIds() {
        Settings settings =
                with(
                        P + "excluded.clients",
                        "User:kafka|__remote_log_metadata_client_*_producer; a|b|x.y ");
        assertTrue(settings.excludes("kafka", "__remote_log_metadata_client_7_producer"));
        assertFalse(settings.excludes("kafka", "__remote_log_metadata_client_7"));
        assertFalse(settings.excludes("kafka", ""));
        assertFalse(settings.excludes("ann", "__remote_log_metadata_client_7_producer"));
        assertTrue(settings.excludes("a%7Cb", "x.y"));
        assertFalse(settings.excludes("a%7Cb", "x-y"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"produce", "fetch", "request"})
    void aStaticQuotaIsTakenByItsNameOrStrimzis(String name) {
        ClientQuotaType type = ClientQuotaType.valueOf(name.toUpperCase(java.util.Locale.ROOT));
        assertEquals(5.5, with(STATIC + name, "5.5").staticQuota(type));
        assertEquals(7.0, Settings.of(Map.of(STATIC + name, "5", P + name, 7)).staticQuota(type));
    }

    @Test
    void aStaticQuotaIsRefusedByTheNameInTheProperties() {
        ConfigException refused =
                assertThrows(ConfigException.class, () -> with(STATIC + "produce", "0"));
        assertTrue(refused.getMessage().contains(STATIC + "produce"), refused.getMessage());
    }

    @Test
    void aFileThatCanHaveNoSuchNameIsRefused() {
        ConfigException refused =
                assertThrows(ConfigException.class, () -> with(P + "token.file", "a\0b"));
        assertTrue(refused.getMessage().contains(P + "token.file"), refused.getMessage());
    }

    @Test
    void excludedPrincipalsAreTakenWithAndWithoutTheirType() {
        Settings settings = Settings.of(
                Map.of(P + "excluded.principals", "User:CN=a b,O=x; bob ;",
                        STATIC + "excluded.principal.name.list", "User:eve"));
        assertTrue(settings.excludes("CN%3Da%20b%2CO%3Dx", "app"));
        assertTrue(settings.excludes("bob", "app"));
        assertTrue(settings.excludes("eve", "app"));
        assertTrue(!settings.excludes("ann", "app"));
        assertTrue(!settings.excludes("", "app"));
    }

    @Test
    void aMisspeltPropertyOfOursIsRefusedAtTheStart() {
        Map<String, String> configs = new HashMap<>(BROKER);
        configs.put(P + "pause.max", "4000");
        ConfigException refused =
                assertThrows(ConfigException.class, () -> Settings.atStart(configs));
        assertTrue(refused.getMessage().contains(P + "pause.max.ms"), refused.getMessage());
    }

    /**
     * Kafka accepts an unknown property at a running broker. Refusing it would prevent switching off.
     */
    @Test
    void aMisspeltPropertyIsIgnoredLater() {
        assertFalse(Settings.of(Map.of(P + "enabld", "true", P + "enabled", "false")).enabled);
    }

    @Test
    void switchedOffThereIsNothingBesideKafkasOwn() {
        Settings settings = Settings.of(
                Map.of(P + "enabled", "false", P + "produce", "5", P + "excluded.principals", "x"));
        assertNull(settings.staticQuota(ClientQuotaType.PRODUCE));
        assertFalse(settings.excludes("x", "app"));
    }

    @Test
    void otherPropertiesAreIgnored() {
        Settings settings = Settings.of(
                Map.of("node.id", 1, STATIC + "storage.check-interval", "60", "x", "y"));
        assertEquals(4000, settings.pauseMaxMs);
    }

    @Test
    void noAddressShowsAPassword() {
        ConfigException refused =
                assertThrows(ConfigException.class, () -> with(P + "url", "http://u:hunter2@a"));
        assertTrue(!refused.getMessage().contains("hunter2"), refused.getMessage());
    }

    @Test
    void httpsMayComeWithAuthoritiesAndAToken() {
        Settings settings = Settings.of(
                Map.of(P + "url", "https://sidecar:7070/", P + "ssl.ca.file", "/ca.pem",
                        P + "token.file", "/token"));
        assertEquals(Path.of("/ca.pem"), settings.caFile);
        assertEquals(Path.of("/token"), settings.tokenFile);
    }

    /**
     * The roles are a list after Kafka's parsing, and a text before it. A node without roles is a
     * broker.
     */
    @Test
    void onlyAControllerThatIsNoBrokerIsADedicatedOne() {
        for (Object roles : List.of("controller", " controller ", List.of("controller"))) {
            assertTrue(Settings.areOfDedicatedController(Map.of("process.roles", roles)));
        }
        for (Object roles : List.of("broker", "broker,controller", List.of("broker", "controller"))) {
            assertFalse(Settings.areOfDedicatedController(Map.of("process.roles", roles)));
        }
        assertFalse(Settings.areOfDedicatedController(Map.of()));
    }

    @Test
    void aMissingReporterIsNamedWithTheLineThatIsNeeded() {
        ConfigException refused = assertThrows(
                ConfigException.class, () -> Settings.atStart(Map.of("process.roles", "broker")));
        String line =
                "metric.reporters=org.apache.kafka.common.metrics.JmxReporter,"
                        + "throttlesidecar.SidecarMetricsReporter";
        assertTrue(refused.getMessage().contains(line), refused.getMessage());
    }
}
