import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Accepts OAUTHBEARER tokens as Amazon's brokers do: signed URLs (Signature Version 4). The login
 * module's options are accessKey, secretKey, region and principal, whom the key belongs to.
 */
public class SignedTokens implements AuthenticateCallbackHandler {
    private Map<String, ?> options = Map.of();

    @Override
    public void configure(
            Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        options = entries.get(0).getOptions();
    }

    @Override
    public void handle(Callback[] callbacks) {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerValidatorCallback asked) {
                try {
                    asked.token(validated(asked.tokenValue()));
                } catch (IllegalArgumentException | GeneralSecurityException error) {
                    asked.error("invalid_token", null, null);
                }
            }
        }
    }

    @Override
    public void close() {}

    private OAuthBearerToken validated(String token) throws GeneralSecurityException {
        URI url = URI.create(new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8));
        String region = option("region");
        Map<String, String> query = new TreeMap<>();
        for (String pair : url.getRawQuery().split("&")) {
            query.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        }
        String signature = query.remove("X-Amz-Signature");
        query.remove("User-Agent");
        String date = query.get("X-Amz-Date");
        String scope = date.substring(0, 8) + "/" + region + "/kafka-cluster/aws4_request";
        String credential = URLDecoder.decode(query.get("X-Amz-Credential"), StandardCharsets.UTF_8);
        String canonical = String.join("&", query.entrySet().stream().map(Object::toString).toList());
        String host = "kafka." + region + ".amazonaws.com";
        String request = "GET\n/\n" + canonical + "\nhost:" + host + "\n\nhost\n" + hash("");
        byte[] key = ("AWS4" + option("secretKey")).getBytes(StandardCharsets.UTF_8);
        for (String part : scope.split("/")) {
            key = mac(key, part);
        }
        String signed = "AWS4-HMAC-SHA256\n" + date + "\n" + scope + "\n" + hash(request);
        if (!url.getHost().equals(host)
                || !query.get("Action").equals("kafka-cluster%3AConnect")
                || !credential.equals(option("accessKey") + "/" + scope)
                || !HexFormat.of().formatHex(mac(key, signed)).equals(signature)) {
            throw new IllegalArgumentException("it is signed otherwise");
        }
        long now = System.currentTimeMillis();
        return new Accepted(token, now + 1000 * Long.parseLong(query.get("X-Amz-Expires")), now,
                option("principal"));
    }

    private String option(String name) {
        return String.valueOf(options.get(name));
    }

    private static String hash(String text) throws GeneralSecurityException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    }

    private static byte[] mac(byte[] key, String text) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private record Accepted(String value, long lifetimeMs, Long startTimeMs, String principalName)
            implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }
    }
}
