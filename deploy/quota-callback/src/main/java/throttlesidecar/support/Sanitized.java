package throttlesidecar.support;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/**
 * A user's name as Kafka has it in metric tags: percent-encoded. Kafka's own class for it moved to
 * another package in 4.4.0, so that no jar could use it in all versions.
 *
 * <p>Example: {@code CN=a b,O=*} is {@code CN%3Da%20b%2CO%3D%2A}.
 */
public final class Sanitized {
    private Sanitized() {}

    public static String of(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8)
                .replace("*", "%2A")
                .replace("+", "%20");
    }
}
