package throttlesidecar.refusal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.log4j.AppenderSkeleton;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.spi.LoggingEvent;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.DefaultConfiguration;
import org.apache.logging.log4j.core.config.Property;
import org.apache.logging.log4j.core.layout.PatternLayout;
import org.junit.jupiter.api.Test;

/** Only refusals are kept out of a broker's log, with either logging library. */
class RefusalLogTest {
    private static final String APIS = "kafka.server.KafkaApis";
    private static final RefusedException REFUSED = new RefusedException("refused", () -> {});
    private static final Exception REAL = new NotEnoughReplicasException("real");

    private final List<String> written = new ArrayList<>();

    /** The lines that log4j2 writes, from the level ERROR on, in its own configuration. */
    private Configuration written(LoggerContext context) {
        Configuration configuration = new DefaultConfiguration();
        AbstractAppender appender =
                new AbstractAppender("test", null, null, true, Property.EMPTY_ARRAY) {
                    @Override
                    public void append(LogEvent event) {
                        PatternLayout.newBuilder().withPattern("%m %xEx").build().toSerializable(event);
                        written.add(event.getMessage().getFormattedMessage());
                    }
                };
        appender.start();
        configuration.getRootLogger().addAppender(appender, null, null);
        context.setConfiguration(configuration);
        return configuration;
    }

    /**
     * With log4j2, refusals stay out, even if the logging is reconfigured or an operator sets the
     * logger's level.
     */
    @Test
    void log4j2() {
        LoggerContext context = (LoggerContext) LogManager.getContext(false);
        Configuration before = context.getConfiguration();
        try {
            written(context);
            assertFalse(RefusalLog.ofBroker().isFiltered(), "Kafka would log with another library");
            RefusalLog log = RefusalLog.of(LogManager.getLogger(APIS)::error);
            assertInstanceOf(Log4j2.class, log);
            assertTrue(log.isFiltered());
            org.apache.logging.log4j.Logger apis = LogManager.getLogger(APIS);
            apis.error("one", REFUSED);
            apis.error("two", REAL);
            apis.error("three");
            assertEquals(List.of("two", "three"), written);

            written(context);
            LogManager.getLogger("another.Apis").error("without the filter", log.refusal("no"));
            assertFalse(log.isFiltered(), "a refusal was logged");
            log.begin();
            assertTrue(log.isFiltered());
            log.filter();
            LogManager.getLogger(APIS).error("with it", REFUSED);
            assertEquals(List.of("two", "three", "without the filter"), written);

            Configurator.setLevel(APIS, org.apache.logging.log4j.Level.DEBUG);
            log.filter();
            log.filter();
            LogManager.getLogger(APIS).error("with a level of its own", REFUSED);
            LogManager.getLogger(APIS).debug("at that level");
            assertEquals("at that level", written.get(3));
            assertEquals(4, written.size());
        } finally {
            context.setConfiguration(before);
        }
    }

    /** With reload4j, all appenders of the logger and of its parents omit refusals. */
    @Test
    void reload4j() {
        class ScopedRequests extends AppenderSkeleton {
            @Override
            protected void append(LoggingEvent event) {
                event.getThrowableStrRep();
                written.add(String.valueOf(event.getMessage()));
            }

            @Override
            public void close() {}

            @Override
            public boolean requiresLayout() {
                return false;
            }
        }

        Logger root = Logger.getRootLogger();
        Logger apis = Logger.getLogger(APIS);
        Level before = root.getLevel();
        try {
            Reload4j log = new Reload4j();
            log.filter();
            assertFalse(log.isFiltered(), "the logger has no appender");
            root.setLevel(Level.ERROR);
            root.addAppender(new ScopedRequests());
            apis.addAppender(new ScopedRequests());
            log.filter();
            log.filter();
            assertTrue(log.isFiltered());
            apis.error("one", REFUSED);
            apis.error("two", REAL);
            apis.error("three");
            assertEquals(List.of("two", "two", "three", "three"), written);

            apis.addAppender(new ScopedRequests());
            apis.error("without the filter", log.refusal("no"));
            assertFalse(log.isFiltered(), "a refusal was logged");
            log.filter();
            apis.error("four", REFUSED);
            assertEquals(5, written.size());
        } finally {
            root.removeAllAppenders();
            apis.removeAllAppenders();
            root.setLevel(before);
        }
    }
}
