package throttlesidecar;

import java.net.URI;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;

/** A broker's properties, by the type that each of ours must have. */
final class RawSettings {
    private static final String USER = "User:";
    private static final long DAY_MS = 86_400_000L;

    private static final Map<ClientQuotaType, String> STATIC =
            new EnumMap<>(
                    Map.of(
                            ClientQuotaType.PRODUCE, "produce",
                            ClientQuotaType.FETCH, "fetch",
                            ClientQuotaType.REQUEST, "request"));

    private final Map<String, ?> configs;

    RawSettings(Map<String, ?> configs) {
        this.configs = configs;
    }

    /** A key of ours that is misspelt would silently leave the default. */
    void refuseUnknown() {
        for (String key : configs.keySet()) {
            if (key.startsWith(Settings.PREFIX) && !Settings.RECONFIGURABLE.contains(key)) {
                throw new ConfigException(
                        "Unknown property "
                                + key
                                + ": there are "
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
            List<?> values = (List<?>) value;
            return List.of(values.stream().map(Object::toString).toArray(String[]::new));
        }
        String text = text(key);
        return text == null
                ? List.of()
                : List.of(
                        Arrays.stream(text.split(separator))
                                .map(String::trim)
                                .filter(part -> !part.isEmpty())
                                .toArray(String[]::new));
    }

    boolean flag(String key, boolean otherwise) {
        String text = text(key);
        if (text == null) {
            return otherwise;
        }
        if (!"true".equalsIgnoreCase(text) && !"false".equalsIgnoreCase(text)) {
            throw new ConfigException(key, text, "must be true or false");
        }
        return Boolean.parseBoolean(text);
    }

    long millis(String key, long otherwise, long least) {
        String text = text(key);
        if (text == null) {
            return otherwise;
        }
        try {
            long value = Long.parseLong(text);
            if (value >= least && value <= DAY_MS) {
                return value;
            }
        } catch (NumberFormatException noNumber) {
            // Refused below.
        }
        throw new ConfigException(
                key,
                text,
                "must be a whole number of milliseconds from "
                        + least + " to " + DAY_MS + ", such as " + otherwise);
    }

    double share(String key, double otherwise) {
        double value = number(key, otherwise, "must be a number from 0.0 to 1.0");
        if (value > 1.0) {
            throw new ConfigException(key, value, "must be a number from 0.0 to 1.0");
        }
        return value;
    }

    double amount(String key, double otherwise) {
        return number(key, otherwise, "must be a number, at least 0");
    }

    private double number(String key, double otherwise, String must) {
        String text = text(key);
        if (text == null) {
            return otherwise;
        }
        double value;
        try {
            value = Double.parseDouble(text);
        } catch (NumberFormatException noNumber) {
            throw new ConfigException(key, text, must);
        }
        if (!(value >= 0.0) || Double.isInfinite(value)) {
            throw new ConfigException(key, text, must);
        }
        return value;
    }

    List<URI> urls() {
        String text = Objects.requireNonNullElse(text(Settings.URL), "http://127.0.0.1:7070");
        List<URI> urls = new ArrayList<>();
        for (String url : text.split(",", -1)) {
            urls.add(url(url.trim()));
        }
        return List.copyOf(urls);
    }

    /** As Kafka: log.dirs, else log.dir. */
    List<String> logDirs() {
        List<String> several = list("log.dirs", ",");
        return several.isEmpty() ? list("log.dir", ",") : several;
    }

    private URI url(String text) {
        String must =
                "must be the sidecar's address, such as http://127.0.0.1:7070, which others may"
                        + " follow after commas";
        URI parsed;
        try {
            parsed = URI.create(text);
        } catch (IllegalArgumentException noAddress) {
            throw new ConfigException(Settings.URL, text, must);
        }
        boolean known = "http".equals(parsed.getScheme()) || "https".equals(parsed.getScheme());
        String path = parsed.getPath();
        boolean bare = path == null || path.isEmpty() || "/".equals(path);
        bare &= parsed.getQuery() == null && parsed.getFragment() == null;
        // -1: the scheme's.
        int port = parsed.getPort();
        boolean possible = port == -1 || port > 0 && port <= 65_535;
        if (!known || parsed.getHost() == null || !bare || !possible) {
            throw new ConfigException(Settings.URL, text, must);
        }
        if (parsed.getUserInfo() != null) {
            throw new ConfigException(
                    Settings.URL
                            + " must not contain a password: write a token to a file, "
                            + Settings.TOKEN_FILE);
        }
        return parsed;
    }

    Set<String> excluded() {
        Set<String> users = new HashSet<>();
        for (String key : List.of(Settings.EXCLUDED, Settings.STATIC_EXCLUDED)) {
            // Names may contain commas, as those of certificates do.
            for (String name : list(key, ";")) {
                String user = name.startsWith(USER) ? name.substring(USER.length()) : name;
                if (user.isEmpty()) {
                    throw new ConfigException(
                            key, text(key), "must be names such as User:ann;User:CN=broker,O=x");
                }
                users.add(Sanitized.of(user));
            }
        }
        return Set.copyOf(users);
    }

    Map<String, List<Pattern>> excludedClients() {
        Map<String, List<Pattern>> clients = new HashMap<>();
        for (String client : list(Settings.EXCLUDED_CLIENTS, ";")) {
            String name = client.startsWith(USER) ? client.substring(USER.length()) : client;
            int bar = name.lastIndexOf('|');
            if (bar < 1 || bar == name.length() - 1) {
                throw new ConfigException(
                        Settings.EXCLUDED_CLIENTS,
                        text(Settings.EXCLUDED_CLIENTS),
                        "must be users and client-ids, of which a * is any part, such as"
                                + " User:kafka|__remote_log_metadata_client_*;User:ann|backup");
            }
            String glob = TopicPatterns.regex(name.substring(bar + 1));
            clients.computeIfAbsent(
                            Sanitized.of(name.substring(0, bar)), user -> new ArrayList<>())
                    .add(Pattern.compile(glob, Pattern.DOTALL));
        }
        return clients;
    }

    TopicPatterns topics() {
        // An empty value is one: no topic is excluded.
        Object value = configs.get(Settings.EXCLUDED_TOPICS);
        return value == null
                ? TopicPatterns.DEFAULT
                : TopicPatterns.of(Settings.EXCLUDED_TOPICS, list(Settings.EXCLUDED_TOPICS, ","));
    }

    Map<ClientQuotaType, Double> staticQuotas() {
        Map<ClientQuotaType, Double> quotas = new EnumMap<>(ClientQuotaType.class);
        STATIC.forEach((type, name) -> {
            double strimzi = quota(Settings.STATIC_PREFIX + name, Double.NaN);
            double quota = quota(Settings.PREFIX + name, strimzi);
            if (!Double.isNaN(quota)) {
                quotas.put(type, quota);
            }
        });
        return quotas;
    }

    private double quota(String key, double otherwise) {
        double quota = amount(key, otherwise);
        // A quota of 0 divides by zero in Kafka, or throttles nobody.
        if (quota == 0.0) {
            throw new ConfigException(key, 0, "must be more than 0");
        }
        return quota;
    }

    Path file(String key) {
        String text = text(key);
        try {
            return text == null ? null : Path.of(text);
        } catch (InvalidPathException noPath) {
            throw new ConfigException(key, text, "must be a file's path");
        }
    }
}
