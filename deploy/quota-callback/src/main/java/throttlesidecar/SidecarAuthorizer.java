package throttlesidecar;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import throttlesidecar.decision.Scope;
import throttlesidecar.refusal.BrokerConnections;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.refusal.RefusedException;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.DeniedRequest;

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
    private volatile BrokerConnections brokers = new BrokerConnections(Map.of());
    private final AtomicBoolean configured = new AtomicBoolean();
    private final AtomicBoolean complained = new AtomicBoolean();

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
        brokers = new BrokerConnections(configs);
        if (!Settings.areOfDedicatedController(configs) && !configured.getAndSet(true)) {
            connections.authorizers(1);
        }
    }

    @Override
    public List<AuthorizationResult> authorize(
            AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        if (context instanceof RequestContext) {
            RequestContext request = (RequestContext) context;
            if (request.requestType() == ApiKeys.PRODUCE.id) {
                produce(request, actions, results);
            } else if (request.fromPrivilegedListener
                    && brokers.saw(request.principal, request.clientAddress, actions, results)) {
                LOG.info(
                        "Connections of {} from {} to the listener between brokers are a broker's own: they"
                                + " are neither refused nor throttled",
                        request.principal, request.clientAddress);
            }
        }
        return results;
    }

    private void produce(
            RequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        Refusals refusals = connections.refusals();
        if (refusals == null) {
            if (!complained.getAndSet(true)) {
                LOG.warn(
                        "No request is refused. To refuse requests, set client.quota.callback.class={}",
                        SidecarQuotaCallback.class.getName());
            }
            return;
        }
        try {
            // In a transaction, Kafka first asks for the transactional id in a separate call.
            boolean allowed = Scope.writesToAny(actions, results, topic -> true);
            DeniedRequest.next(!allowed);
            if (allowed) {
                boolean isBroker = context.fromPrivilegedListener
                        && brokers.has(
                                context.principal, context.clientAddress, context.connectionId);
                refusals.check(
                        context.connectionId, context.principal, context.clientId(), isBroker, actions,
                        results);
            }
        } catch (RefusedException refused) {
            throw refused;
        } catch (RuntimeException | LinkageError broken) {
            // An error must not keep the broker from serving the request.
            refusals.failed(broken);
        }
    }

    @Override
    public void close() throws IOException {
        super.close();
        if (configured.getAndSet(false)) {
            connections.authorizers(-1);
        }
    }
}
