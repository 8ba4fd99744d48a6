package throttlesidecar.refusal;

import java.util.List;
import java.util.function.BiConsumer;
import org.slf4j.LoggerFactory;

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

    private volatile boolean isAdded;
    private volatile boolean isLogged;

    /** Adds the filter unless it is there already; returns whether it is there. */
    protected abstract boolean addFilter();

    /** Adds the filter before each refusal, since a broker's logging may be reconfigured at any time. */
    public final void filter() {
        try {
            isAdded = addFilter();
        } catch (RuntimeException | LinkageError broken) {
            isAdded = false;
        }
    }

    /** A refusal, which notes whether it is logged. */
    final RefusedException refusal(String message) {
        return new RefusedException(message, () -> isLogged = true);
    }

    /** A throttle begins: forgets what was logged in the last one. */
    final void begin() {
        isLogged = false;
    }

    /** Whether the filter is there, and no refusal of this throttle, or of the start, was logged. */
    public final boolean isFiltered() {
        return isAdded && !isLogged;
    }

    /** The filter for the logging that this broker has. */
    public static RefusalLog ofBroker() {
        return of(LoggerFactory.getLogger(LOGGER)::error);
    }

    /**
     * The first filter that keeps a refusal out of the log.
     *
     * @param logger writes as Kafka does.
     */
    static RefusalLog of(BiConsumer<String, Throwable> logger) {
        for (String name : List.of("Log4j2", "Reload4j")) {
            try {
                String full = RefusalLog.class.getPackageName() + '.' + name;
                RefusalLog log =
                        (RefusalLog) Class.forName(full).getDeclaredConstructor().newInstance();
                log.filter();
                if (log.isFiltered()) {
                    RefusedException refused = log.refusal("no request was refused");
                    logger.accept("throttle-sidecar tests whether this log omits refusals", refused);
                }
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
