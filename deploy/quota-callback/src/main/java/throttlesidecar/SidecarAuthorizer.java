package throttlesidecar;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import throttlesidecar.refusal.BrokerConnections;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.settings.Settings;

/**
 * Kafka's own authorizer, which in addition refuses produce requests that a pause can't stop. This is
 * the class for {@code authorizer.class.name}; it needs {@link SidecarQuotaCallback} beside it.
 *
 * <p>Kafka charges a quota after the append, so a client that opens a new connection for each request
 * lands all of them. The authorizer is the only plugin that Kafka asks before the append. Every answer
 * is that of StandardAuthorizer. If an allowed request is refused, the client gets an exception that it
 * retries, see {@link Refusals}. Without the callback, this class behaves like StandardAuthorizer.
 * Requests of brokers are never refused, see {@link BrokerConnections}.
 *
 * <p>A dedicated controller needs this class as well, since all nodes must agree on ACLs. It receives
 * no produce requests.
 */
public final class SidecarAuthorizer extends StandardAuthorizer {
    private static final Logger LOG = LoggerFactory.getLogger(SidecarAuthorizer.class);

    private final Connections connections;

    /** Null while nothing can be refused. */
    private volatile AuthorizedRequests requests;

    /** For Kafka. */
    public SidecarAuthorizer() {
        this(Connections.SHARED);
    }

    SidecarAuthorizer(Connections connections) {
        this.connections = connections;
    }

    @Override
    public void configure(Map<String, ?> configs) {
        super.configure(configs);
        if (Settings.areOfDedicatedController(configs) || requests != null) {
            return;
        }
        try {
            // Kafka's internal classes, which a later version may move, are used only there.
            requests = new AuthorizedRequests(connections, configs);
            connections.authorizers(1);
        } catch (ReflectiveOperationException | LinkageError moved) {
            LOG.warn("No request is refused, since this version of Kafka is not known", moved);
            connections.cannotRefuse(moved.toString());
        }
    }

    @Override
    public List<AuthorizationResult> authorize(
            AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        AuthorizedRequests known = requests;
        if (known != null) {
            known.authorized(context, actions, results);
        }
        return results;
    }

    @Override
    public void close() throws IOException {
        super.close();
        if (requests != null) {
            requests = null;
            connections.authorizers(-1);
        }
    }
}
