package throttlesidecar.observability;

import org.slf4j.Logger;

/** The log for the callback's lines, which tests replace. */
public interface Journal {
    void info(String line);

    void warn(String line);

    static Journal of(Logger logger) {
        return new Journal() {
            @Override
            public void info(String line) {
                logger.info(line);
            }

            @Override
            public void warn(String line) {
                logger.warn(line);
            }
        };
    }
}
