package throttlesidecar.refusal;

import java.util.Enumeration;
import org.apache.log4j.Appender;
import org.apache.log4j.Category;
import org.apache.log4j.Logger;
import org.apache.log4j.spi.Filter;
import org.apache.log4j.spi.LoggingEvent;
import org.apache.log4j.spi.ThrowableInformation;

/** The logging of Kafka 3. Loggers have no filters, so every appender of KafkaApis' logger gets one. */
final class Reload4j extends RefusalLog {
    /** Denies events with our exception, and is neutral to all others. */
    private static final class NoRefusals extends Filter {
        @Override
        public int decide(LoggingEvent event) {
            ThrowableInformation thrown = event.getThrowableInformation();
            boolean refused = thrown != null && thrown.getThrowable() instanceof RefusedException;
            return refused ? DENY : NEUTRAL;
        }
    }

    @Override
    protected boolean addFilter() {
        boolean any = false;
        Category logger = Logger.getLogger(LOGGER);
        while (logger != null) {
            Enumeration<?> appenders = logger.getAllAppenders();
            while (appenders.hasMoreElements()) {
                add((Appender) appenders.nextElement());
                any = true;
            }
            logger = logger.getAdditivity() ? logger.getParent() : null;
        }
        return any;
    }

    private static synchronized void add(Appender appender) {
        for (Filter each = appender.getFilter(); each != null; each = each.getNext()) {
            if (each instanceof NoRefusals) {
                return;
            }
        }
        appender.addFilter(new NoRefusals());
    }
}
