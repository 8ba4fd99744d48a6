package throttlesidecar.refusal;

import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.logging.log4j.core.filter.CompositeFilter;

/** The logging of Kafka 4. Each configured logger gets the filter, wherever Kafka logs refusals. */
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
        Configuration configuration = ((LoggerContext) context).getConfiguration();
        configuration.getLoggers().values().forEach(Log4j2::addTo);
        addTo(configuration.getRootLogger());
        return true;
    }

    private static void addTo(LoggerConfig config) {
        if (!has(config.getFilter())) {
            synchronized (FILTER) {
                if (!has(config.getFilter())) {
                    config.addFilter(FILTER);
                }
            }
        }
    }

    private static boolean has(Filter filter) {
        return filter instanceof CompositeFilter
                ? List.of(((CompositeFilter) filter).getFiltersArray()).contains(FILTER)
                : filter == FILTER;
    }
}
