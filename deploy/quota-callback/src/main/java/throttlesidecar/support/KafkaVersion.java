package throttlesidecar.support;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/**
 * The version of Kafka in this JVM, since quotas differ by it. It is read from a file of
 * Kafka's clients: the class that has it moved to another package in 4.4.0.
 */
public final class KafkaVersion {
    private static final String FILE = "/kafka/kafka-version.properties";

    private KafkaVersion() {}

    /** As in {@code 4.3.1}; empty when it is unknown. */
    public static String read() {
        try (InputStream file = KafkaVersion.class.getResourceAsStream(FILE)) {
            if (file == null) {
                return "";
            }
            Properties properties = new Properties();
            properties.load(file);
            return properties.getProperty("version", "").trim();
        } catch (IOException | IllegalArgumentException unreadable) {
            return "";
        }
    }

    /**
     * Whether a kind of quota no longer counts once the last of it is removed: from 4.2.0 on. Before,
     * it counts until the broker's restart (KAFKA-19282).
     *
     * @param version Kafka's, or Confluent's, which is by 4 ahead: 8.1.0-ccs is 4.1.
     */
    public static boolean forgetsRemovedKinds(String version) {
        String[] parts = version.split("[.-]");
        boolean isConfluents = version.endsWith("-ccs") || version.endsWith("-ce");
        try {
            int major = Integer.parseInt(parts[0]) - (isConfluents ? 4 : 0);
            int minor = Integer.parseInt(parts[1]);
            return major > 4 || major == 4 && minor >= 2;
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException unknown) {
            // A version that can't be read is a newer one.
            return true;
        }
    }
}
