package throttlesidecar.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The versions of Kafka, by the names of Apache's and others' builds. */
class KafkaVersionTest {
    @Test
    void theVersionIsThatOfTheJarOnTheClassPath() {
        String version = KafkaVersion.read();
        String jar = org.apache.kafka.common.metrics.Metrics.class
                .getProtectionDomain().getCodeSource().getLocation().getPath();
        assertTrue(jar.endsWith("/kafka-clients-" + version + ".jar"), version + " of " + jar);
    }

    @ParameterizedTest
    @CsvSource({
        "3.3.2, false", "3.9.1, false", "4.0.1, false", "4.1.1, false", "4.2.0, true",
        "4.3.1, true", "4.4.0, true", "4.10.0, true", "5.0.0, true", "4.2.0-rc1, true",
        "4.1.0-SNAPSHOT, false", "3.9.0.redhat-00001, false",
        // The major numbers of Confluent's versions are higher by 4.
        "7.9.0-ccs, false", "8.0.0-ccs, false", "8.1.1-ce, false", "8.2.0-ccs, true",
        "unknown, true", "'', true",
    })
    void removedKindsAreForgottenFrom42On(String version, boolean forgets) {
        assertEquals(forgets, KafkaVersion.forgetsRemovedKinds(version));
    }
}
