package throttlesidecar;

import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * The broker's properties that are ours, checked: an invalid value is refused with a sentence that
 * describes valid ones, so that no broker starts half-configured. Other properties are ignored.
 *
 * <p>Example: {@code client.quota.callback.sidecar.pause.max.ms=4s} is refused with "must be a whole
 * number of milliseconds from 1 to 86400000, such as 4000".
 */
final class Settings implements Enforcement.Limits, Refusals.Terms {
    static final String PREFIX = "client.quota.callback.sidecar.";
    static final String URL = PREFIX + "url";
    static final String ENABLED = PREFIX + "enabled";
    static final String PAUSE_MAX = PREFIX + "pause.max.ms";
    static final String EMERGENCY_PAUSE_MAX = PREFIX + "pause.emergency.max.ms";
    static final String LEAK_RATIO = PREFIX + "leak.ratio";
    static final String LEAK_BYTES = PREFIX + "leak.bytes.per.second";
    static final String RAMP = PREFIX + "ramp.ms";
    static final String FALLBACK = PREFIX + "fallback";
    static final String EXCLUDED = PREFIX + "excluded.principals";
    static final String EXCLUDED_CLIENTS = PREFIX + "excluded.clients";
    static final String EXCLUDED_TOPICS = PREFIX + "excluded.topics";
    static final String REFUSE = PREFIX + "refuse.enabled";
    static final String TOKEN_FILE = PREFIX + "token.file";
    static final String CA_FILE = PREFIX + "ssl.ca.file";
    static final String STATIC_PREFIX = "client.quota.callback.static.";
    static final String STATIC_EXCLUDED = STATIC_PREFIX + "excluded.principal.name.list";

    /** All of them, and all may be changed while the broker runs. */
    static final Set<String> RECONFIGURABLE =
            Set.of(
                    URL,
                    ENABLED,
                    PAUSE_MAX,
                    EMERGENCY_PAUSE_MAX,
                    LEAK_RATIO,
                    LEAK_BYTES,
                    RAMP,
                    FALLBACK,
                    EXCLUDED,
                    EXCLUDED_CLIENTS,
                    EXCLUDED_TOPICS,
                    REFUSE,
                    TOKEN_FILE,
                    CA_FILE,
                    PREFIX + "produce",
                    PREFIX + "fetch",
                    PREFIX + "request",
                    STATIC_PREFIX + "produce",
                    STATIC_PREFIX + "fetch",
                    STATIC_PREFIX + "request",
                    STATIC_EXCLUDED);

    private static final String METADATA_LOG_DIR = "metadata.log.dir";
    private static final String REPORTERS = "metric.reporters";
    private static final String ROLES = "process.roles";

    private final List<URI> urls;
    private final List<String> logDirs;
    private final Path metadataDir;
    private final boolean enabled;
    private final long pauseMaxMs;
    private final long emergencyPauseMaxMs;
    private final double leakRatio;
    private final double leakBytesPerSecond;
    private final long rampMs;
    private final double fallback;
    private final Set<String> excluded;
    private final Map<String, List<Pattern>> excludedClients;
    private final TopicPatterns excludedTopics;
    private final boolean refuses;
    private volatile ExcludedWriters excludedWriters;
    private final Map<ClientQuotaType, Double> staticQuotas;
    private final Path tokenFile;
    private final Path caFile;

    private Settings(RawSettings raw) {
        urls = raw.urls();
        logDirs = raw.logDirs();
        metadataDir = raw.file(METADATA_LOG_DIR);
        enabled = raw.flag(ENABLED, true);
        pauseMaxMs = raw.millis(PAUSE_MAX, 4000, 1);
        emergencyPauseMaxMs = raw.millis(EMERGENCY_PAUSE_MAX, 300_000, 1);
        leakRatio = raw.share(LEAK_RATIO, 0.01);
        leakBytesPerSecond = raw.amount(LEAK_BYTES, Double.NaN);
        rampMs = raw.millis(RAMP, 60_000, 0);
        fallback = raw.share(FALLBACK, 1.0);
        // Switched off, quotas are those of Kafka's own callback.
        Set<String> names = raw.excluded();
        excluded = enabled ? names : Set.of();
        Map<String, List<Pattern>> clients = raw.excludedClients();
        excludedClients = enabled ? clients : Map.of();
        excludedTopics = raw.topics();
        refuses = raw.flag(REFUSE, true);
        Map<ClientQuotaType, Double> quotas = raw.staticQuotas();
        staticQuotas = enabled ? quotas : Map.of();
        tokenFile = raw.file(TOKEN_FILE);
        caFile = raw.file(CA_FILE);
    }

    /**
     * What these settings don't do, though they seem to: sentences for the log.
     *
     * <p>At a broker's start the first of them is an error. Later nobody is refused for them: they may
     * come of a default for the cluster that meets a property of one broker, and would keep that
     * broker from every later change, even from being switched off.
     */
    List<String> clashes() {
        List<String> clashes = new ArrayList<>();
        if (emergencyPauseMaxMs < pauseMaxMs) {
            clashes.add(
                    EMERGENCY_PAUSE_MAX + "=" + emergencyPauseMaxMs + " must be at least "
                            + PAUSE_MAX + ", and counts as " + pauseMaxMs);
        }
        if (caFile != null && urls.stream().noneMatch(Settings::isHttps)) {
            clashes.add(CA_FILE + " is for an https address in " + URL + ", and is not used");
        }
        return enabled ? clashes : List.of();
    }

    /** What is not safe, as a sentence for the log; null for nothing. */
    String warning() {
        String hosts =
                urls.stream()
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

    /**
     * The settings in a broker's properties. An unknown property of ours is ignored: Kafka accepts it
     * at a running broker, and refusing it would refuse every later change too, even switching off.
     *
     * @throws ConfigException a value is invalid; the message describes valid ones.
     */
    static Settings of(Map<String, ?> configs) {
        return new Settings(new RawSettings(configs));
    }

    /**
     * The same at a broker's start, where the reporter must be there too and nothing misspelt.
     *
     * @throws ConfigException likewise.
     */
    static Settings atStart(Map<String, ?> configs) {
        RawSettings raw = new RawSettings(configs);
        String reporter = SidecarMetricsReporter.class.getName();
        if (!raw.list(REPORTERS, ",").contains(reporter)) {
            throw new ConfigException(
                    REPORTERS
                            + " must name "
                            + reporter
                            + " too, or the rates of clients are not known: "
                            + REPORTERS
                            + "=org.apache.kafka.common.metrics.JmxReporter,"
                            + reporter);
        }
        raw.refuseUnknown();
        Settings settings = new Settings(raw);
        for (String clash : settings.clashes()) {
            throw new ConfigException(clash);
        }
        return settings;
    }

    /** Switched off, all else as by default. */
    static Settings off() {
        return new Settings(new RawSettings(Map.of(ENABLED, "false")));
    }

    /** Whether these are the properties of a controller that is no broker. */
    static boolean areOfDedicatedController(Map<String, ?> configs) {
        return List.of("controller").equals(new RawSettings(configs).list(ROLES, ","));
    }

    /** The broker's own sidecar. */
    URI url() {
        return urls.get(0);
    }

    /** All sidecars, the own one first; others are asked in case it is dead. */
    List<URI> urls() {
        return urls;
    }

    /** The broker's log dirs. */
    List<String> logDirs() {
        return logDirs;
    }

    /** A folder of the broker's that is there at its start; null where none is known. */
    Path folder() {
        return metadataDir != null ? metadataDir : logDirs.isEmpty() ? null : Path.of(logDirs.get(0));
    }

    boolean enabled() {
        return enabled;
    }

    /** The factor once no valid document is left, within [0, 1]. */
    double fallback() {
        return fallback;
    }

    /** The quota that all clients share that no quota names; null for none. */
    Double staticQuota(ClientQuotaType type) {
        return staticQuotas.get(type);
    }

    /** The file with the bearer token; null for none. */
    Path tokenFile() {
        return tokenFile;
    }

    /** The file with certificates, PEM, to trust with https; null for the JVM's own. */
    Path caFile() {
        return urls.stream().anyMatch(Settings::isHttps) ? caFile : null;
    }

    @Override
    public long pauseMaxMs() {
        return pauseMaxMs;
    }

    @Override
    public long emergencyPauseMaxMs() {
        return Math.max(pauseMaxMs, emergencyPauseMaxMs);
    }

    @Override
    public double leakRatio() {
        return leakRatio;
    }

    @Override
    public double leakBytesPerSecond() {
        return leakBytesPerSecond;
    }

    @Override
    public long rampMs() {
        return rampMs;
    }

    @Override
    public boolean excludes(String user, String clientId) {
        return excluded.contains(user) || excludesClient(user, clientId);
    }

    /** Whether a client is excluded by its client-id, and others of its user are not. */
    boolean excludesClient(String user, String clientId) {
        return excludedWriters != null && enabled && excludedWriters.has(user, clientId)
                || excludedClients.getOrDefault(user, List.of()).stream()
                        .anyMatch(pattern -> pattern.matcher(clientId).matches());
    }

    /** The same settings; who writes to excluded topics alone is excluded too. */
    Settings with(ExcludedWriters writers) {
        excludedWriters = writers;
        return this;
    }

    @Override
    public boolean refuses() {
        return refuses;
    }

    @Override
    public boolean excludesTopic(String topic) {
        return excludedTopics.match(topic);
    }
}
