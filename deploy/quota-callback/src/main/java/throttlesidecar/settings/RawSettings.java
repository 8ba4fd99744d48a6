package throttlesidecar.settings;

import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import throttlesidecar.support.Sanitized;

/** Reads a broker's properties as the types that {@link Settings} needs. */
final class RawSettings {
    private static final String USER = "User:";
    /** A name in which a comma separates principals, or whose type has another case. */
    private static final Pattern NO_NAME =
            Pattern.compile(",\\s*User:|^User:", Pattern.CASE_INSENSITIVE);
    private static final long DAY_MS = 86_400_000L;

    private final Map<String, ?> configs;

    RawSettings(Map<String, ?> configs) {
        this.configs = configs;
    }

    /** A misspelt key of ours would silently leave the default. */
    void refuseUnknown() {
        for (String key : configs.keySet()) {
            if (key.startsWith(Settings.PREFIX) && !Settings.RECONFIGURABLE.contains(key)) {
                throw new ConfigException(
                        "Unknown property " + key + ": there are "
                                + String.join(", ", new TreeSet<>(Settings.RECONFIGURABLE)));
            }
        }
    }

    private String text(String key) {
        Object value = configs.get(key);
        String text = value == null ? "" : value.toString().trim();
        return text.isEmpty() ? null : text;
    }

    List<String> list(String key, String separator) {
        Object value = configs.get(key);
        if (value instanceof List) {
            return ((List<?>) value)
                    .stream().map(Object::toString).collect(Collectors.toUnmodifiableList());
        }
        String text = text(key);
        return Arrays.stream(text == null ? new String[0] : text.split(separator))
                .map(String::trim)
                .filter(part -> !part.isEmpty())
                .collect(Collectors.toUnmodifiableList());
    }

    boolean flag(String key, boolean otherwise) {
        return Boolean.parseBoolean(value(
                key, Boolean.toString(otherwise), text -> text,
                text -> text.equalsIgnoreCase("true") || text.equalsIgnoreCase("false"),
                "must be true or false"));
    }

    long millis(String key, long otherwise, long least) {
        return value(
                key, otherwise, Long::valueOf, value -> value >= least && value <= DAY_MS,
                "must be a whole number of milliseconds from " + least + " to " + DAY_MS
                        + ", such as " + otherwise);
    }

    /** A number of bytes; null without a value. */
    Long bytes(String key) {
        return value(
                key, null, Long::valueOf, value -> value >= 0,
                "must be a whole number of bytes, at least 0");
    }

    double share(String key, double otherwise) {
        return value(
                key, otherwise, Double::valueOf, value -> value >= 0.0 && value <= 1.0,
                "must be a number from 0.0 to 1.0");
    }

    double amount(String key, double otherwise) {
        return value(
                key, otherwise, Double::valueOf, value -> value >= 0.0 && value <= Double.MAX_VALUE,
                "must be a number, at least 0");
    }

    Path file(String key) {
        return value(key, null, text -> Path.of(text), path -> true, "must be a file's path");
    }

    /** A property's value, if it can be parsed and fits; {@code otherwise} without one. */
    private <T> T value(
            String key, T otherwise, Function<String, T> parse, Predicate<T> fits, String must) {
        String text = text(key);
        if (text == null) {
            return otherwise;
        }
        try {
            T value = parse.apply(text);
            if (fits.test(value)) {
                return value;
            }
        } catch (IllegalArgumentException unreadable) {
            // No number or no path: refused below.
        }
        throw new ConfigException(key, text, must);
    }

    List<URI> urls() {
        String text = Objects.requireNonNullElse(text(Settings.URL), "http://127.0.0.1:7070");
        return Arrays.stream(text.split(",", -1))
                .map(url -> url(url.trim()))
                .collect(Collectors.toUnmodifiableList());
    }

    /** As Kafka: log.dirs, else log.dir. */
    List<String> logDirs() {
        List<String> several = list("log.dirs", ",");
        return several.isEmpty() ? list("log.dir", ",") : several;
    }

    private URI url(String text) {
        String must = "must be the sidecar's address, such as http://127.0.0.1:7070, which others may"
                + " follow after commas";
        URI parsed;
        try {
            parsed = URI.create(text);
        } catch (IllegalArgumentException noAddress) {
            throw new ConfigException(Settings.URL, text, must);
        }
        boolean hasScheme = "http".equals(parsed.getScheme()) || "https".equals(parsed.getScheme());
        String path = parsed.getPath();
        boolean isBare = (path == null || path.isEmpty() || "/".equals(path))
                && parsed.getQuery() == null
                && parsed.getFragment() == null;
        // -1: the scheme's.
        int port = parsed.getPort();
        boolean hasPort = port == -1 || port > 0 && port <= 65_535;
        if (!hasScheme || parsed.getHost() == null || !isBare || !hasPort) {
            throw new ConfigException(Settings.URL, text, must);
        }
        if (parsed.getUserInfo() != null) {
            throw new ConfigException(
                    Settings.URL + " must not contain a password: write a token to a file, "
                            + Settings.TOKEN_FILE);
        }
        return parsed;
    }

    /** The users that are excluded, sanitised. */
    Set<String> excludedUsers() {
        Set<String> users = new HashSet<>();
        for (String key : List.of(Settings.EXCLUDED, Settings.STATIC_EXCLUDED)) {
            // Names may contain commas, as those of certificates do.
            for (String name : list(key, ";")) {
                String user = withoutType(name);
                if (user.isEmpty() || NO_NAME.matcher(user).find()) {
                    throw new ConfigException(
                            key, text(key),
                            "must be names such as User:ann;User:CN=broker,O=x, separated by ;");
                }
                users.add(Sanitized.of(user));
            }
        }
        return Set.copyOf(users);
    }

    /** User, sanitised, to the patterns of its client-ids that are excluded. */
    Map<String, List<Pattern>> excludedClients() {
        Map<String, List<Pattern>> clients = new HashMap<>();
        for (String client : list(Settings.EXCLUDED_CLIENTS, ";")) {
            String name = withoutType(client);
            int bar = name.lastIndexOf('|');
            if (bar < 1 || bar == name.length() - 1) {
                throw new ConfigException(
                        Settings.EXCLUDED_CLIENTS, text(Settings.EXCLUDED_CLIENTS),
                        "must be users and client-ids, of which a * is any part, such as"
                                + " User:kafka|__remote_log_metadata_client_*;User:ann|backup");
            }
            String pattern = TopicPatterns.regex(name.substring(bar + 1));
            clients.computeIfAbsent(Sanitized.of(name.substring(0, bar)), user -> new ArrayList<>())
                    .add(Pattern.compile(pattern, Pattern.DOTALL));
        }
        return clients;
    }

    private static String withoutType(String principal) {
        return principal.startsWith(USER) ? principal.substring(USER.length()) : principal;
    }

    TopicPatterns excludedTopics() {
        // An empty value is a value: no topic is excluded.
        return configs.get(Settings.EXCLUDED_TOPICS) == null
                ? TopicPatterns.DEFAULT
                : TopicPatterns.of(Settings.EXCLUDED_TOPICS, list(Settings.EXCLUDED_TOPICS, ","));
    }

    Map<ClientQuotaType, Double> staticQuotas() {
        Map<ClientQuotaType, Double> quotas = new EnumMap<>(ClientQuotaType.class);
        for (ClientQuotaType type :
                List.of(ClientQuotaType.PRODUCE, ClientQuotaType.FETCH, ClientQuotaType.REQUEST)) {
            String name = type.name().toLowerCase(Locale.ROOT);
            double ofStrimzi = quota(Settings.STATIC_PREFIX + name, Double.NaN);
            double quota = quota(Settings.PREFIX + name, ofStrimzi);
            if (!Double.isNaN(quota)) {
                quotas.put(type, quota);
            }
        }
        return quotas;
    }

    private double quota(String key, double otherwise) {
        double quota = amount(key, otherwise);
        // Kafka divides by a quota of 0, or throttles nobody for it.
        if (quota == 0.0) {
            throw new ConfigException(key, 0, "must be more than 0");
        }
        return quota;
    }
}
