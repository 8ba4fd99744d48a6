package throttlesidecar.support;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/**
 * Percent-encodes a user's name, as in Kafka's metric tags. Kafka's own class for it moved to another
 * package in 4.4.0, so one jar can't use it with all versions.
 *
 * <p>Example: {@code CN=a b,O=*} becomes {@code CN%3Da%20b%2CO%3D%2A}.
 */
public final class Sanitized {
    /** Most names have no other characters, and are asked for each request. */
    private static final String UNCHANGED =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    private Sanitized() {}

    public static String of(String name) {
        for (int at = 0; at < name.length(); at++) {
            if (UNCHANGED.indexOf(name.charAt(at)) < 0) {
                return URLEncoder.encode(name, StandardCharsets.UTF_8)
                        .replace("*", "%2A")
                        .replace("+", "%20");
            }
        }
        return name;
    }
}
