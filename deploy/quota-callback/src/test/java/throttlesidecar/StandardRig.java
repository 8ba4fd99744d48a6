package throttlesidecar;

import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Makes and calls authorizers as a broker of any version does. */
final class StandardRig {
    static final Map<String, String> OPEN =
            Map.of("node.id", "1", "allow.everyone.if.no.acl.found", "true");

    private StandardRig() {}

    /** Configures an authorizer, passes it its metrics, and completes the load of its ACLs. */
    static <T extends StandardAuthorizer> T started(T authorizer, Map<String, ?> configs) {
        authorizer.configure(configs);
        try {
            // From 4.1 on, this call passes the metrics.
            Class.forName("org.apache.kafka.common.internals.Plugin")
                    .getMethod("wrapInstance", Object.class, Metrics.class, String.class)
                    .invoke(null, authorizer, new Metrics(), "authorizer.class.name");
        } catch (ClassNotFoundException older) {
            // Older authorizers have no metrics.
        } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException e) {
            throw new AssertionError(e);
        }
        authorizer.completeInitialLoad();
        return authorizer;
    }

    static RequestContext context(ApiKeys api, String connection, String user, String clientId) {
        return context(api, connection, new KafkaPrincipal("User", user), clientId);
    }

    static RequestContext context(
            ApiKeys api, String connection, KafkaPrincipal principal, String clientId) {
        return context(
                api, connection, InetAddress.getLoopbackAddress(), principal, clientId, false);
    }

    /** As of a request that came from an address, by the listener between brokers or another one. */
    static RequestContext context(
            ApiKeys api, String connection, InetAddress address, KafkaPrincipal principal,
            String clientId, boolean isBetweenBrokers) {
        return new RequestContext(
                new RequestHeader(api, api.latestVersion(), clientId, 1), connection, address,
                principal, new ListenerName("PLAIN"), SecurityProtocol.PLAINTEXT,
                ClientInformation.EMPTY, isBetweenBrokers);
    }

    static List<Action> writes(ResourceType type, String... names) {
        List<Action> actions = new ArrayList<>();
        for (String name : names) {
            ResourcePattern resource = new ResourcePattern(type, name, PatternType.LITERAL);
            actions.add(new Action(AclOperation.WRITE, resource, 1, true, true));
        }
        return actions;
    }

    /** An authorizer's results for a produce request to topics. */
    static List<AuthorizationResult> produce(
            StandardAuthorizer authorizer, String connection, String user, String... topics) {
        return authorizer.authorize(
                context(ApiKeys.PRODUCE, connection, user, "app"),
                writes(ResourceType.TOPIC, topics));
    }
}
