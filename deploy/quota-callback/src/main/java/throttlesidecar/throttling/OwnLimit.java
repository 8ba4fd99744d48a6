package throttlesidecar.throttling;

/** The produce quotas that operators set, whatever the factor. */
public interface OwnLimit {

    /**
     * The quota of a tag set.
     *
     * @param user the tag "user": sanitised, or empty.
     * @param clientId the tag "client-id", or empty.
     * @return bytes per second; null for none.
     */
    Double of(String user, String clientId);

    /** A number that changes whenever a result of {@link #of} may have changed. */
    long version();
}
