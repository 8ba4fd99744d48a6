package throttlesidecar.settings;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigException;

/**
 * Names of topics, in which a star stands for any characters.
 *
 * <p>Example: {@code __remote_log_metadata,connect-*} are that topic and all of Connect's.
 */
final class TopicPatterns {
    /** The metadata of tiered storage, whose writers free the disk. */
    static final TopicPatterns DEFAULT = new TopicPatterns(List.of("__remote_log_metadata"));

    /** The most names whose result is cached. */
    private static final int MOST_NAMES = 10_000;

    private static final String LEGAL = "[A-Za-z0-9._*-]+";

    private final Pattern pattern;
    private final Map<String, Boolean> known = new ConcurrentHashMap<>();

    private TopicPatterns(List<String> patterns) {
        pattern =
                Pattern.compile(
                        patterns.stream()
                                .map(TopicPatterns::regex)
                                .collect(Collectors.joining("|")));
    }

    /** What matches a text in which a star stands for any characters. */
    static String regex(String glob) {
        return Arrays.stream(glob.split("\\*", -1))
                .map(Pattern::quote)
                .collect(Collectors.joining(".*"));
    }

    /**
     * Patterns that were checked.
     *
     * @param key the property that has them.
     * @throws ConfigException one can't match any topic.
     */
    static TopicPatterns of(String key, List<String> patterns) {
        for (String each : patterns) {
            if (!each.matches(LEGAL)) {
                throw new ConfigException(
                        key,
                        each,
                        "must be names of topics, in which * stands for any characters, such as"
                                + " __remote_log_metadata,connect-*");
            }
        }
        return new TopicPatterns(patterns);
    }

    /** Whether a topic is one of them. */
    boolean match(String topic) {
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
