package throttlesidecar;

import java.util.HashMap;
import java.util.Map;
import kafka.metrics.KafkaMetricsReporter;
import kafka.utils.VerifiableProperties;

/**
 * Releases the reserves of full volumes before Kafka opens its metadata log, which by default is in the
 * first log dir. Kafka makes the quota callback only after that. Of all plugins, only those of {@code
 * kafka.metrics.reporters} are made earlier (SharedServer, from 3.3.2 to 4.4.0). It reports no metrics.
 */
public final class ReserveReporter implements KafkaMetricsReporter {
    @Override
    public void init(VerifiableProperties properties) {
        Map<String, Object> configs = new HashMap<>();
        properties.props().forEach((key, value) -> configs.put(key.toString(), value));
        ReserveRelease.atStart(configs);
    }
}
