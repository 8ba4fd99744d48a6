package throttlesidecar.support;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/**
 * The version of Kafka in this JVM, which decides some rules of quotas. It is read from a file of
 * Kafka's clients, because the class with the version moved to another package in 4.4.0.
 */
public final class KafkaVersion {
    private static final String FILE = "/kafka/kafka-version.properties";

    private KafkaVersion() {}

    /** The version, such as {@code 4.3.1}; empty if it is unknown. */
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
     * Whether a kind of quota no longer counts once its last quota is removed, as in Kafka 4.2.0 and
     * later. In earlier versions the kind counts until the broker restarts (KAFKA-19282).
     *
     * @param version Kafka's version, or Confluent's, whose major number is 4 higher: 8.1.0-ccs is 4.1.
     */
    public static boolean forgetsRemovedKinds(String version) {
        String[] parts = version.split("[.-]");
        boolean isConfluents = version.endsWith("-ccs") || version.endsWith("-ce");
        try {
            int major = Integer.parseInt(parts[0]) - (isConfluents ? 4 : 0);
            int minor = Integer.parseInt(parts[1]);
            return major > 4 || major == 4 && minor >= 2;
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException unknown) {
            // A version that can't be parsed is assumed to be newer.
            return true;
        }
    }
}
