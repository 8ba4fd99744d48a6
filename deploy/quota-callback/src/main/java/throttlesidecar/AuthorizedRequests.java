package throttlesidecar;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Journal;
import throttlesidecar.refusal.BrokerConnections;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.refusal.RefusedException;
import throttlesidecar.throttling.DeniedRequest;

/**
 * Passes authorized requests on to {@link Refusals} and {@link BrokerConnections}. It alone uses {@link
 * RequestContext}, an internal class of Kafka, for the connection's id and its listener.
 */
final class AuthorizedRequests {
    private static final Logger LOG = LoggerFactory.getLogger(SidecarAuthorizer.class);

    /** The id of Kafka's protocol. */
    private static final int PRODUCE = 0;

    private final Connections connections;
    private final BrokerConnections brokers;
    private final AtomicBoolean complained = new AtomicBoolean();

    /**
     * Resolves Kafka's internal classes.
     *
     * @param configs the broker's properties.
     * @throws ReflectiveOperationException this version of Kafka has other fields.
     */
    AuthorizedRequests(Connections connections, Map<String, ?> configs)
            throws ReflectiveOperationException {
        RequestContext.class.getField("connectionId");
        RequestContext.class.getField("fromPrivilegedListener");
        this.connections = connections;
        this.brokers = new BrokerConnections(configs);
    }

    /**
     * Looks at a request; the results are those of the actions, in order.
     *
     * @throws RefusedException the request is refused.
     */
    void authorized(
            AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        try {
            if (!(context instanceof RequestContext)) {
                return;
            }
            RequestContext request = (RequestContext) context;
            if (request.requestType() != PRODUCE) {
                other(request, actions, results);
            } else if (actions.isEmpty() || isOfTopic(actions.get(0))) {
                produce(request, actions, results);
            }
        } catch (RefusedException refused) {
            throw refused;
        } catch (RuntimeException | LinkageError broken) {
            // An error must not keep the broker from serving the request.
            Refusals refusals = connections.refusals();
            if (refusals != null) {
                refusals.failed(broken);
            }
        }
    }

    /** False for the transactional id, for which Kafka asks in a separate call. */
    private static boolean isOfTopic(Action action) {
        return action.resourcePattern().resourceType() == ResourceType.TOPIC;
    }

    private void other(
            RequestContext request, List<Action> actions, List<AuthorizationResult> results) {
        if (request.fromPrivilegedListener
                && brokers.saw(request.principal(), request.clientAddress(), actions, results)) {
            LOG.info(
                    "Connections of {} from {} to the listener between brokers are a broker's own: they are"
                            + " neither refused nor throttled",
                    Journal.line(request.principal().toString()), request.clientAddress());
        }
    }

    private void produce(
            RequestContext request, List<Action> actions, List<AuthorizationResult> results) {
        Refusals refusals = connections.refusals();
        if (refusals == null) {
            if (!complained.getAndSet(true)) {
                LOG.warn(
                        "No request is refused. To refuse requests, set client.quota.callback.class={}",
                        SidecarQuotaCallback.class.getName());
            }
            return;
        }
        boolean allowed = Scope.writesToAny(actions, results, topic -> true);
        DeniedRequest.next(!allowed);
        if (allowed) {
            String id = request.connectionId;
            boolean isBroker = request.fromPrivilegedListener
                    && brokers.has(request.principal(), request.clientAddress(), id);
            refusals.check(id, request.principal(), request.clientId(), isBroker, actions, results);
        }
    }
}
