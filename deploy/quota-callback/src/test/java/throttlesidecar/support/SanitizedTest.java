package throttlesidecar.support;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Method;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The names of users in tags equal those of Kafka's own class, in either package. */
class SanitizedTest {
    private static Method kafkas() throws ReflectiveOperationException {
        String name = "org.apache.kafka.common.utils.Sanitizer";
        try {
            return Class.forName(name).getMethod("sanitize", String.class);
        } catch (ClassNotFoundException moved) {
            return Class.forName("org.apache.kafka.common.utils.internals.Sanitizer")
                    .getMethod("sanitize", String.class);
        }
    }

    @Test
    void everyCharacterIsWrittenAsKafkaWritesIt() throws ReflectiveOperationException {
        Method kafkas = kafkas();
        for (int character = 0; character <= Character.MAX_VALUE; character++) {
            String name = "a" + (char) character + "b";
            assertEquals(kafkas.invoke(null, name), Sanitized.of(name), "U+" + character);
        }
    }

    @Test
    void namesOfAnyCharactersAreWrittenAsKafkaWritesThem() throws ReflectiveOperationException {
        Method kafkas = kafkas();
        Random random = new Random(1);
        for (int each = 0; each < 10_000; each++) {
            StringBuilder points = new StringBuilder();
            random.ints(random.nextInt(12), 0, Character.MAX_CODE_POINT + 1)
                    .forEach(points::appendCodePoint);
            String name = points.toString();
            assertEquals(kafkas.invoke(null, name), Sanitized.of(name));
        }
    }
}
