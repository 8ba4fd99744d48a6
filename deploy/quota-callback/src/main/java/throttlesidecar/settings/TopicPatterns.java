package throttlesidecar.settings;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigException;

/**
 * Patterns of topic names, in which a star matches any characters.
 *
 * <p>Example: {@code __remote_log_metadata,connect-*} matches that topic and all of Connect's topics.
 */
final class TopicPatterns {
    /** The metadata topic of tiered storage, whose writers free the disk. */
    static final TopicPatterns DEFAULT = new TopicPatterns(List.of("__remote_log_metadata"));

    /** The most names whose result is cached. */
    private static final int MOST_NAMES = 10_000;

    /** Kafka's bound, which does not apply to names that a client asks for. */
    private static final int LONGEST_NAME = 249;

    private static final String LEGAL = "[A-Za-z0-9._*-]+";

    private final Pattern pattern;
    private final Map<String, Boolean> known = new ConcurrentHashMap<>();

    private TopicPatterns(List<String> patterns) {
        pattern = Pattern.compile(
                patterns.stream().map(TopicPatterns::regex).collect(Collectors.joining("|")));
    }

    /** The regular expression of a pattern in which a star matches any characters. */
    static String regex(String glob) {
        return Arrays.stream(glob.split("\\*", -1))
                .map(Pattern::quote)
                .collect(Collectors.joining(".*"));
    }

    /**
     * Checks patterns.
     *
     * @param key the property with the patterns.
     * @throws ConfigException a pattern can't match any topic.
     */
    static TopicPatterns of(String key, List<String> patterns) {
        for (String each : patterns) {
            if (!each.matches(LEGAL)) {
                throw new ConfigException(
                        key, each, "must be names of topics, in which * matches any characters, such as"
                                + " __remote_log_metadata,connect-*");
            }
        }
        return new TopicPatterns(patterns);
    }

    boolean match(String topic) {
        if (topic.length() > LONGEST_NAME) {
            return false;
        }
        Boolean matches = known.get(topic);
        if (matches == null) {
            matches = pattern.matcher(topic).matches();
            if (known.size() < MOST_NAMES) {
                known.put(topic, matches);
            }
        }
        return matches;
    }
}
