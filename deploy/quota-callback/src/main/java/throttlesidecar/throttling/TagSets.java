package throttlesidecar.throttling;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.kafka.common.metrics.KafkaMetric;

/**
 * The tag sets of the broker in this JVM, by their tags.
 *
 * <p>Kafka makes the metrics reporter, which fills this table, and the callback, which reads it,
 * separately: the reporter first, and two of each in combined mode. So they share one table. A tag set
 * exists as long as Kafka's rate of it, until an hour after its last request.
 */
public final class TagSets {
    /** The JVM's. */
    public static final TagSets SHARED = new TagSets();

    private static final String NAME = "byte-rate";
    private static final String GROUP = "Produce";

    private final Map<String, Map<String, TagSet>> byUser = new ConcurrentHashMap<>();
    private volatile Enforcement enforcement;

    /** Computes the tag sets' quotas; null while no callback is configured. */
    public Enforcement enforcement() {
        return enforcement;
    }

    public void enforcement(Enforcement newEnforcement) {
        enforcement = newEnforcement;
    }

    /** The tag set with these tags; null if it has had no traffic. */
    public TagSet find(String user, String clientId) {
        Map<String, TagSet> ofUser = byUser.get(user);
        return ofUser == null ? null : ofUser.get(clientId);
    }

    /**
     * Visits each tag set; a tag set that is added or removed meanwhile may be missed.
     *
     * @param user visits only this user's tag sets; null for all.
     */
    public void forEach(String user, Consumer<TagSet> visitor) {
        if (user != null) {
            byUser.getOrDefault(user, Map.of()).values().forEach(visitor);
            return;
        }
        for (Map<String, TagSet> ofUser : byUser.values()) {
            ofUser.values().forEach(visitor);
        }
    }

    int size() {
        return byUser.values().stream().map(Map::values).mapToInt(Collection::size).sum();
    }

    /**
     * Adds a metric of Kafka's, if it is the rate of a tag set.
     *
     * @param isNew whether nothing was recorded with the metric yet.
     */
    public void add(KafkaMetric metric, boolean isNew) {
        try {
            addRate(metric, isNew);
        } catch (RuntimeException | LinkageError error) {
            // Kafka adds metrics while it serves requests.
            if (enforcement != null) {
                enforcement.failed(error);
            }
        }
    }

    private void addRate(KafkaMetric metric, boolean isNew) {
        if (isRate(metric)) {
            Map<String, String> tags = metric.metricName().tags();
            byUser.compute(tags.get(TagSet.USER_TAG), (user, ofUser) -> {
                Map<String, TagSet> sets = ofUser == null ? new ConcurrentHashMap<>() : ofUser;
                TagSet tagSet = sets.computeIfAbsent(
                        tags.get(TagSet.CLIENT_ID_TAG), clientId -> new TagSet(user, clientId));
                // Two reporters report each metric.
                if (tagSet.metric != metric) {
                    tagSet.metric = metric;
                    install(tagSet);
                    if (isNew && enforcement != null) {
                        enforcement.appeared(tagSet);
                    }
                }
                return sets;
            });
        }
    }

    /** Drops a metric that Kafka has removed. */
    public void remove(KafkaMetric metric) {
        if (isRate(metric)) {
            Map<String, String> tags = metric.metricName().tags();
            byUser.computeIfPresent(tags.get(TagSet.USER_TAG), (user, ofUser) -> {
                ofUser.computeIfPresent(tags.get(TagSet.CLIENT_ID_TAG), (clientId, tagSet) -> {
                    // Two reporters report each metric, and a new metric may have come between.
                    if (tagSet.metric != metric) {
                        return tagSet;
                    }
                    // Cached clients then look up their tag set again.
                    tagSet.metric = null;
                    return null;
                });
                return ofUser.isEmpty() ? null : ofUser;
            });
        }
    }

    /** Replaces Kafka's configuration, which returns when a quota is changed, by ours. */
    public void install(TagSet tagSet) {
        KafkaMetric metric = tagSet.metric;
        if (metric != null && !(metric.config() instanceof TagSetConfig)) {
            metric.config(new TagSetConfig(metric.config(), tagSet, this));
        }
    }

    private static boolean isRate(KafkaMetric metric) {
        Map<String, String> tags = metric.metricName().tags();
        return NAME.equals(metric.metricName().name())
                && GROUP.equals(metric.metricName().group())
                && tags.get(TagSet.USER_TAG) != null
                && tags.get(TagSet.CLIENT_ID_TAG) != null
                && metric.config() != null;
    }
}
