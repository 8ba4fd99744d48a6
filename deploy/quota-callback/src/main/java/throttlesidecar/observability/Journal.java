package throttlesidecar.observability;

import java.util.regex.Pattern;
import org.slf4j.Logger;

/** The log for the callback's lines, which tests replace. */
public interface Journal {
    /** Controls, formats, ends of lines and paragraphs, lone surrogates, and unassigned code points. */
    Pattern INVISIBLE = Pattern.compile("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cs}\\p{Cn}]");

    void info(String line);

    void warn(String line);

    static Journal of(Logger logger) {
        return new Journal() {
            @Override
            public void info(String line) {
                logger.info(line(line));
            }

            @Override
            public void warn(String line) {
                logger.warn(line(line));
            }
        };
    }

    /** The text as one log line: what a client or a sidecar sent can't imitate the broker's lines. */
    static String line(String text) {
        return INVISIBLE.matcher(text).replaceAll(" ");
    }
}
