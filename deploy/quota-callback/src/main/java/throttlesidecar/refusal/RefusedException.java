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

    private final transient Runnable logged;

    /**
     * An exception for one request.
     *
     * @param logged runs whenever the exception is written to a log.
     */
    public RefusedException(String message, Runnable logged) {
        super(message);
        this.logged = logged;
    }

    /** Loggers call this; Kafka does not. */
    @Override
    public StackTraceElement[] getStackTrace() {
        logged.run();
        return super.getStackTrace();
    }

    /** As {@link #getStackTrace}. */
    @Override
    public String toString() {
        logged.run();
        return super.toString();
    }
}
