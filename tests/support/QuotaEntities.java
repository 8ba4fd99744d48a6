import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Asks Kafka's own ClientQuotaManager which quota a client is under. Lines come on standard input,
 * their words set apart by tabs:
 *
 * <pre>
 * set USER CLIENT LIMIT    (each "-", "default", or "=" and the name; the limit, or "-": removed)
 * ask =USER CLIENT         ("=" and the client-id, or "-": the request has none)
 * end                      (another manager, without quotas, is for what follows)
 * </pre>
 *
 * and each "ask" is answered by the limit and the metric tags, user and client-id, of all who share
 * it; without a quota the limit is Java's largest.
 */
public final class QuotaEntities {
    private static final String NONE = "-";
    private static final String DEFAULT = "default";

    private final ClientQuotaManager manager =
            new ClientQuotaManager(
                    new ClientQuotaManagerConfig(), new Metrics(), QuotaType.PRODUCE, Time.SYSTEM,
                    "");

    private QuotaEntities() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintWriter out = new PrintWriter(System.out, false, StandardCharsets.UTF_8);
        QuotaEntities entities = new QuotaEntities();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "set":
                    entities.set(words[1], words[2], words[3]);
                    break;
                case "ask":
                    out.println(entities.ask(words[1].substring(1), clientId(words[2])));
                    break;
                default:
                    // Its thread ends by itself, within a second.
                    entities.manager.initiateShutdown();
                    entities = new QuotaEntities();
                    out.flush();
            }
        }
        // The manager's thread is still there.
        Runtime.getRuntime().halt(0);
    }

    private void set(String user, String client, String limit) {
        manager.updateQuota(
                user(user),
                client(client),
                limit.equals(NONE)
                        ? Optional.empty()
                        : Optional.of(Quota.upperBound(Double.parseDouble(limit))));
    }

    private String ask(String user, String client) throws IOException {
        Session session =
                new Session(
                        new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user),
                        InetAddress.getLoopbackAddress());
        double limit = manager.quota(session.principal, client).bound();
        Map<String, String> tags = manager.getOrCreateQuotaSensors(session, client).metricTags();
        return limit + "\t" + Sanitizer.desanitize(tags.get("user")) + "\t" + tags.get("client-id");
    }

    /** The client-id as a broker reads it from a request. */
    private static String clientId(String word) {
        RequestHeaderData header =
                new RequestHeaderData()
                        .setRequestApiKey(ApiKeys.PRODUCE.id)
                        .setRequestApiVersion(ApiKeys.PRODUCE.latestVersion())
                        .setClientId(word.equals(NONE) ? null : word.substring(1));
        short version = ApiKeys.PRODUCE.requestHeaderVersion(header.requestApiVersion());
        return RequestHeader.parse(MessageUtil.toByteBufferAccessor(header, version).buffer())
                .clientId();
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> user(String word) {
        switch (word) {
            case NONE:
                return Optional.empty();
            case DEFAULT:
                return Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default:
                return Optional.of(
                        new ClientQuotaManager.UserEntity(Sanitizer.sanitize(word.substring(1))));
        }
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> client(String word) {
        switch (word) {
            case NONE:
                return Optional.empty();
            case DEFAULT:
                return Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default:
                return Optional.of(new ClientQuotaManager.ClientIdEntity(word.substring(1)));
        }
    }
}
