package throttlesidecar.refusal;

import org.apache.kafka.common.errors.NotEnoughReplicasException;

/**
 * A produce request was refused before anything of it was appended.
 *
 * <p>Kafka answers with the error code of the nearest superclass that has one: NOT_ENOUGH_REPLICAS,
 * which every client retries, and newer ones get the message too. It has no stack trace, as all of
 * Kafka's.
 */
public final class RefusedException extends NotEnoughReplicasException {
    private static final long serialVersionUID = 1L;

    public RefusedException(String message) {
        super(message);
    }
}
