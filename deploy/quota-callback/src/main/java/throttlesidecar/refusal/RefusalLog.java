package throttlesidecar.refusal;

import java.util.List;

/**
 * Keeps refusals out of the broker's log, where Kafka would write an error of 1.3 kB for each. It
 * filters events by their exception, whatever the logger's level, and nothing else.
 *
 * <p>Kafka 4 logs with log4j2, Kafka 3 with reload4j, and a broker may have neither. Refusals that
 * can't be filtered are logged.
 */
public abstract class RefusalLog {
    /** The logger that writes refusals. */
    static final String LOGGER = "kafka.server.KafkaApis";

    private volatile boolean isFiltered;

    /** Adds the filter unless it is there already; returns whether it is there. */
    protected abstract boolean addFilter();

    /** Adds the filter before each refusal, since a broker's logging may be reconfigured at any time. */
    public final void filter() {
        try {
            isFiltered = addFilter();
        } catch (RuntimeException | LinkageError broken) {
            isFiltered = false;
        }
    }

    /** Whether the filter was there at the last refusal, or at the start. */
    public final boolean isFiltered() {
        return isFiltered;
    }

    /** The filter for the logging that this broker has. */
    public static RefusalLog ofBroker() {
        for (String name : List.of("Log4j2", "Reload4j")) {
            try {
                String full = RefusalLog.class.getPackageName() + '.' + name;
                RefusalLog log =
                        (RefusalLog) Class.forName(full).getDeclaredConstructor().newInstance();
                log.filter();
                if (log.isFiltered()) {
                    return log;
                }
            } catch (ReflectiveOperationException | RuntimeException | LinkageError absent) {
                // The broker uses another logging library.
            }
        }
        return new RefusalLog() {
            @Override
            protected boolean addFilter() {
                return false;
            }
        };
    }
}
