package throttlesidecar.refusal;

import java.util.List;

/**
 * Keeps refusals out of the broker's log, where Kafka writes an error of 1.3 kB for each: exactly
 * those, by their exception, whatever the logger's level.
 *
 * <p>Kafka 4 logs with log4j2, Kafka 3 with reload4j, and a broker may have neither. What can't be
 * filtered is logged.
 */
public interface RefusalLog {
    /** The logger that writes them. */
    String LOGGER = "kafka.server.KafkaApis";

    /**
     * Puts the filter in place, unless it is there. Called before each refusal, since a broker's
     * logging may be configured anew at any time.
     */
    void filter();

    /** Whether it was there when something was last refused, or at the start. */
    boolean isFiltered();

    /** For the logging that this broker has. */
    static RefusalLog ofBroker() {
        for (String name : List.of(
                "throttlesidecar.refusal.Log4j2", "throttlesidecar.refusal.Reload4j")) {
            try {
                RefusalLog log =
                        (RefusalLog)
                                Class.forName(name).getDeclaredConstructor().newInstance();
                log.filter();
                if (log.isFiltered()) {
                    return log;
                }
            } catch (ReflectiveOperationException | RuntimeException | LinkageError absent) {
                // It is another logging.
            }
        }
        return new RefusalLog() {
            @Override
            public void filter() {
                // There is nothing to filter.
            }

            @Override
            public boolean isFiltered() {
                return false;
            }
        };
    }
}
