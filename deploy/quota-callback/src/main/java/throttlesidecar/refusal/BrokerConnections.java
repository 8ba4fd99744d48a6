package throttlesidecar.refusal;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import throttlesidecar.support.Recent;

/**
 * Recognises the connections of the cluster's own brokers, which write the metadata of tiered storage,
 * the dead letters of share groups, and whatever later versions add. Brokers send these records as
 * ordinary produce requests, and drop them if they are refused.
 *
 * <p>Only brokers are allowed CLUSTER_ACTION, which replication, transactions and share groups need. So
 * a principal that used it on the listener between brokers is the brokers' own. If clients have another
 * listener, all connections of that principal to the listener between brokers count. If there is only
 * one listener, clients may use the brokers' principal there. Then only connections from the addresses
 * that used CLUSTER_ACTION count, and those from this broker's own machine.
 *
 * <p>Without logins, brokers and clients have the same principal and nothing is recognised.
 *
 * <p>Example: User:kafka replicates from 10.0.0.2, and the brokers have one listener. A dead letter of
 * User:kafka from 10.0.0.2 is never refused. A record of User:kafka from 10.0.0.9 may be.
 */
public final class BrokerConnections {
    /** The most principals and addresses; only brokers add to them. */
    private static final int MOST = 4096;

    private final boolean isShared;
    private final Recent<Object, Boolean> known = new Recent<>(MOST);

    /** By a broker's properties, at first nothing is recognised. */
    public BrokerConnections(Map<String, ?> configs) {
        List<String> names = new ArrayList<>();
        for (String listener : list(configs, "listeners")) {
            names.add(listener.split("://", 2)[0].trim());
        }
        names.removeAll(list(configs, "controller.listener.names"));
        isShared = names.size() < 2;
    }

    private static List<String> list(Map<String, ?> configs, String key) {
        return Arrays.asList(Objects.toString(configs.get(key), "").trim().split("\\s*,\\s*"));
    }

    /**
     * Notes a request that came by the listener between brokers, and returns whether it shows a broker
     * that was not known before.
     */
    public boolean saw(
            KafkaPrincipal principal, InetAddress address, List<Action> actions,
            List<AuthorizationResult> results) {
        if (actions.size() != 1
                || actions.get(0).operation() != AclOperation.CLUSTER_ACTION
                || results.get(0) != AuthorizationResult.ALLOWED
                || KafkaPrincipal.ANONYMOUS.equals(principal)) {
            return false;
        }
        boolean isNew = note(principal);
        return isShared ? !address.isLoopbackAddress() && note(List.of(principal, address)) : isNew;
    }

    private boolean note(Object key) {
        return known.get(key) == null && known.put(key, true);
    }

    /**
     * Whether a connection to the listener between brokers is one of a broker.
     *
     * @param id begins with the local address.
     */
    public boolean has(KafkaPrincipal principal, InetAddress address, String id) {
        if (known.get(principal) == null) {
            return false;
        }
        boolean isHere = id.startsWith(address.getHostAddress() + ":") && !address.isLoopbackAddress();
        return !isShared || isHere || known.get(List.of(principal, address)) != null;
    }
}
