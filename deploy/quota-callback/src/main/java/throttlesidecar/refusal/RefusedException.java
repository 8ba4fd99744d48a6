package throttlesidecar.refusal;

import org.apache.kafka.common.errors.NotEnoughReplicasException;

/**
 * A produce request was refused before anything of it was appended.
 *
 * <p>Kafka answers with the error code of the nearest superclass that has one: NOT_ENOUGH_REPLICAS.
 * Producers retry it, as often as their settings say. Brokers do not: for a dead letter of a share group
 * they retry NOT_LEADER_OR_FOLLOWER only, so their requests must not be refused, see {@link
 * BrokerConnections}. Newer clients get the message too. Like all of Kafka's API exceptions it has no
 * stack trace.
 */
public final class RefusedException extends NotEnoughReplicasException {
    private static final long serialVersionUID = 1L;

    public RefusedException(String message) {
        super(message);
    }
}
