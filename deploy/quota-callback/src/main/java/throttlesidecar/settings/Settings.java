package throttlesidecar.settings;

import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiPredicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * The jar's properties in a broker's server.properties, checked. An invalid value is refused with a
 * message that describes valid values, so no broker starts half configured. Other properties are
 * ignored.
 *
 * <p>Example: {@code client.quota.callback.sidecar.pause.max.ms=4s} is refused with "must be a whole
 * number of milliseconds from 1 to 86400000, such as 4000".
 */
public final class Settings {
    public static final String PREFIX = "client.quota.callback.sidecar.";
    public static final String URL = PREFIX + "url";
    public static final String ENABLED = PREFIX + "enabled";
    public static final String PAUSE_MAX = PREFIX + "pause.max.ms";
    public static final String EMERGENCY_PAUSE_MAX = PREFIX + "pause.emergency.max.ms";
    public static final String LEAK_RATIO = PREFIX + "leak.ratio";
    public static final String LEAK_BYTES = PREFIX + "leak.bytes.per.second";
    public static final String RAMP = PREFIX + "ramp.ms";
    public static final String FALLBACK = PREFIX + "fallback";
    public static final String EXCLUDED = PREFIX + "excluded.principals";
    public static final String EXCLUDED_CLIENTS = PREFIX + "excluded.clients";
    public static final String EXCLUDED_TOPICS = PREFIX + "excluded.topics";
    public static final String REFUSE = PREFIX + "refuse.enabled";
    public static final String RESERVE = PREFIX + "reserve.bytes";
    public static final String TOKEN_FILE = PREFIX + "token.file";
    public static final String CA_FILE = PREFIX + "ssl.ca.file";
    public static final String CERTIFICATE_FILE = PREFIX + "ssl.certificate.file";
    public static final String KEY_FILE = PREFIX + "ssl.key.file";
    static final String STATIC_PREFIX = "client.quota.callback.static.";
    static final String STATIC_EXCLUDED = STATIC_PREFIX + "excluded.principal.name.list";

    /** Every property of the jar. Each may be changed while the broker runs. */
    public static final Set<String> RECONFIGURABLE = Set.of(
            URL, ENABLED, PAUSE_MAX, EMERGENCY_PAUSE_MAX, LEAK_RATIO, LEAK_BYTES, RAMP,
            FALLBACK, EXCLUDED, EXCLUDED_CLIENTS, EXCLUDED_TOPICS, REFUSE, RESERVE, TOKEN_FILE, CA_FILE,
            CERTIFICATE_FILE, KEY_FILE,
            PREFIX + "produce", PREFIX + "fetch", PREFIX + "request",
            STATIC_PREFIX + "produce", STATIC_PREFIX + "fetch", STATIC_PREFIX + "request",
            STATIC_EXCLUDED);

    /** The class for {@code metric.reporters}, which must be there. */
    public static final String REPORTER_CLASS = "throttlesidecar.SidecarMetricsReporter";

    /** The class for {@code kafka.metrics.reporters}, which must be there if there are reserves. */
    static final String RESERVE_CLASS = "throttlesidecar.ReserveReporter";

    /** The class for {@code authorizer.class.name}, which may be there. */
    public static final String AUTHORIZER_CLASS = "throttlesidecar.SidecarAuthorizer";

    /** A release lasts this many ramps: by then a backlog of eight ramps' traffic is sent. */
    private static final int RAMPS_OF_A_RELEASE = 4;

    /** The addresses of all sidecars, the broker's own one first. */
    public final List<URI> urls;

    public final List<String> logDirs;
    public final boolean enabled;

    /** The longest pause of a client. */
    public final long pauseMaxMs;

    /** The longest pause while a volume fills although producers are throttled. */
    public final long emergencyPauseMaxMs;

    /** At factor 0, the share of the rate before the throttle that may still be written. */
    public final double leakRatio;

    /** The same as an absolute rate; NaN: the ratio applies. */
    public final double leakBytesPerSecond;

    /** After a release a client's pace grows by its previous rate in this time; 0: at once. */
    public final long rampMs;

    /** The factor once no valid document is left, from 0 to 1. */
    public final double fallback;

    /** Whether the authorizer refuses anything. */
    public final boolean refuses;

    /** The bytes of the reserve in each log dir; 0: none; null: not set, so a file of before stays. */
    public final Long reserveBytes;

    /** The file with the bearer token; null for none. */
    public final Path tokenFile;

    /** The certificates (PEM) to trust with https; null for the JVM's own, and without https. */
    public final Path caFile;

    /** This broker's certificate (PEM) for mutual TLS; null for none, and without https. */
    public final Path certificateFile;

    /** The file with the key of that certificate, perhaps the same one. */
    public final Path keyFile;

    private final Path metadataDir;
    private final Set<String> excludedUsers;
    private final Map<String, List<Pattern>> excludedClients;
    private final TopicPatterns excludedTopics;
    private final Map<ClientQuotaType, Double> staticQuotas;
    private final List<String> contradictions = new ArrayList<>();

    /** Further excluded clients, by user and client-id. */
    private volatile BiPredicate<String, String> alsoExcluded = (user, clientId) -> false;

    private Settings(RawSettings raw) {
        urls = raw.urls();
        logDirs = raw.logDirs();
        metadataDir = raw.file("metadata.log.dir");
        enabled = raw.flag(ENABLED, true);
        pauseMaxMs = raw.millis(PAUSE_MAX, 4000, 1);
        long emergencyMs = raw.millis(EMERGENCY_PAUSE_MAX, 300_000, 1);
        emergencyPauseMaxMs = Math.max(pauseMaxMs, emergencyMs);
        leakRatio = raw.share(LEAK_RATIO, 0.01);
        leakBytesPerSecond = raw.amount(LEAK_BYTES, Double.NaN);
        rampMs = raw.millis(RAMP, 60_000, 0);
        fallback = raw.share(FALLBACK, 1.0);
        Set<String> users = raw.excludedUsers();
        Map<String, List<Pattern>> clients = raw.excludedClients();
        Map<ClientQuotaType, Double> quotas = raw.staticQuotas();
        // Switched off, the quotas are those of Kafka's own callback.
        excludedUsers = enabled ? users : Set.of();
        excludedClients = enabled ? clients : Map.of();
        staticQuotas = enabled ? quotas : Map.of();
        excludedTopics = raw.excludedTopics();
        refuses = raw.flag(REFUSE, true);
        Long reserve = raw.bytes(RESERVE);
        // Switched off, the callback leaves the files alone.
        reserveBytes = enabled ? reserve : null;
        tokenFile = raw.file(TOKEN_FILE);
        boolean isSecure = urls.stream().anyMatch(Settings::isHttps);
        caFile = fileForHttps(raw, CA_FILE, isSecure);
        certificateFile = fileForHttps(raw, CERTIFICATE_FILE, isSecure);
        Path key = fileForHttps(raw, KEY_FILE, isSecure);
        keyFile = key != null ? key : certificateFile;
        if (enabled && key != null && certificateFile == null) {
            contradictions.add(KEY_FILE + " is for a certificate in " + CERTIFICATE_FILE + ", which is not set");
        }
        boolean hasReserve = reserveBytes != null && reserveBytes > 0;
        if (hasReserve && !raw.list("kafka.metrics.reporters", ",").contains(RESERVE_CLASS)) {
            contradictions.add(
                    RESERVE + " needs kafka.metrics.reporters=" + RESERVE_CLASS
                            + ", or the metadata log is opened before the reserve can be released");
        }
        if (enabled && emergencyMs < pauseMaxMs) {
            contradictions.add(
                    EMERGENCY_PAUSE_MAX + "=" + emergencyMs + " must be at least " + PAUSE_MAX
                            + ", and counts as " + pauseMaxMs);
        }
    }

    private Path fileForHttps(RawSettings raw, String key, boolean isSecure) {
        Path file = raw.file(key);
        if (enabled && file != null && !isSecure) {
            contradictions.add(key + " is for an https address in " + URL + ", and is not used");
        }
        return isSecure ? file : null;
    }

    /** Whether https needs a file: without one, the JVM's authorities are trusted. */
    public boolean hasTlsFiles() {
        return caFile != null || certificateFile != null;
    }

    /**
     * Reads the properties of a running broker. An unknown property of ours is ignored: Kafka accepts
     * it at a running broker, and refusing it would refuse every later change too, even switching off.
     *
     * @throws ConfigException a value is invalid; the message describes valid ones.
     */
    public static Settings of(Map<String, ?> configs) {
        return new Settings(new RawSettings(configs));
    }

    /**
     * Reads the properties at a broker's start, where the reporter must be there and nothing misspelt.
     *
     * @throws ConfigException as {@link #of}.
     */
    public static Settings atStart(Map<String, ?> configs) {
        RawSettings raw = new RawSettings(configs);
        if (!raw.list("metric.reporters", ",").contains(REPORTER_CLASS)) {
            throw new ConfigException(
                    "metric.reporters must name " + REPORTER_CLASS
                            + " too, or the rates of clients are not known: "
                            + "metric.reporters=org.apache.kafka.common.metrics.JmxReporter,"
                            + REPORTER_CLASS);
        }
        raw.refuseUnknown();
        Settings settings = new Settings(raw);
        for (String contradiction : settings.contradictions) {
            throw new ConfigException(contradiction);
        }
        return settings;
    }

    /** Switched off, everything else by default. */
    public static Settings off() {
        return of(Map.of(ENABLED, "false"));
    }

    /** Whether these are the properties of a controller that is no broker. */
    public static boolean areOfDedicatedController(Map<String, ?> configs) {
        return List.of("controller").equals(new RawSettings(configs).list("process.roles", ","));
    }

    /** The same settings; clients for which the predicate (user, client-id) is true are excluded too. */
    public Settings alsoExcluding(BiPredicate<String, String> clients) {
        alsoExcluded = clients;
        return this;
    }

    /**
     * Settings that contradict each other, as sentences for the log. A broker does not start with them.
     * While it runs they are only logged: a default for the whole cluster may contradict a property of
     * one broker, and must not keep that broker from later changes.
     */
    public List<String> contradictions() {
        return contradictions;
    }

    /** A warning that the token is sent in clear text, and to which hosts; null for none. */
    public String warning() {
        String hosts = urls.stream()
                .filter(url -> !isHttps(url) && !isLoopback(url.getHost()))
                .map(URI::getHost)
                .collect(Collectors.joining(", "));
        return tokenFile == null || hosts.isEmpty()
                ? null
                : "The token of " + TOKEN_FILE + " is sent to " + hosts
                        + " in clear text: use an https address in " + URL;
    }

    private static boolean isLoopback(String host) {
        return host.equalsIgnoreCase("localhost") || host.startsWith("127.") || host.equals("[::1]");
    }

    private static boolean isHttps(URI url) {
        return "https".equals(url.getScheme());
    }

    /** The address of the broker's own sidecar. */
    public URI url() {
        return urls.get(0);
    }

    /** A folder of the broker that exists at its start; null where none is known. */
    public Path folder() {
        return metadataDir != null ? metadataDir : logDirs.isEmpty() ? null : Path.of(logDirs.get(0));
    }

    /** How long a release lasts, ms; 0 without a ramp. */
    public long releaseMs() {
        return RAMPS_OF_A_RELEASE * rampMs;
    }

    /** The quota that all clients share that no quota names; null for none. */
    public Double staticQuota(ClientQuotaType type) {
        return staticQuotas.get(type);
    }

    /** Whether clients with these tags are never throttled. */
    public boolean excludes(String user, String clientId) {
        return excludedUsers.contains(user) || excludesClient(user, clientId);
    }

    /** Whether a client is excluded by its client-id, and other clients of its user are not. */
    public boolean excludesClient(String user, String clientId) {
        return enabled && alsoExcluded.test(user, clientId)
                || excludedClients.getOrDefault(user, List.of()).stream()
                        .anyMatch(pattern -> pattern.matcher(clientId).matches());
    }

    /** Whether a request that writes to a topic is never refused for it. */
    public boolean excludesTopic(String topic) {
        return excludedTopics.match(topic);
    }
}
