package throttlesidecar.refusal;

import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.logging.log4j.core.filter.CompositeFilter;

/** The logging of Kafka 4. The filter is added to the configuration of KafkaApis' logger. */
final class Log4j2 extends RefusalLog {
    private static final Filter FILTER = new NoRefusals();

    /** Denies events with our exception, and is neutral to all others. */
    private static final class NoRefusals extends AbstractFilter {
        @Override
        public Result filter(LogEvent event) {
            return event.getThrown() instanceof RefusedException ? Result.DENY : Result.NEUTRAL;
        }
    }

    @Override
    protected boolean addFilter() {
        Object context = LogManager.getContext(Log4j2.class.getClassLoader(), false);
        if (!(context instanceof LoggerContext)) {
            return false;
        }
        LoggerConfig config = ((LoggerContext) context).getConfiguration().getLoggerConfig(LOGGER);
        if (!has(config.getFilter())) {
            synchronized (FILTER) {
                if (!has(config.getFilter())) {
                    config.addFilter(FILTER);
                }
            }
        }
        return has(config.getFilter());
    }

    private static boolean has(Filter filter) {
        return filter instanceof CompositeFilter
                ? List.of(((CompositeFilter) filter).getFiltersArray()).contains(FILTER)
                : filter == FILTER;
    }
}
