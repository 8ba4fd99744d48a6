package throttlesidecar.jmx;

/** The quota callback of this broker, as throttlesidecar:type=QuotaCallback in JMX. */
public interface QuotaCallbackMXBean {

    /** The factor for all by which produce quotas are multiplied, from 0 to 1. */
    double getFactorApplied();

    /**
     * Where that comes from: SIDECAR, LOCAL (a volume of this broker is too full, by its own eyes),
     * FORECAST (that of the last sidecar), FALLBACK (no document is valid) or DISABLED.
     */
    String getSource();

    /** The generation of the sidecar's document in force; 0 when none is. */
    long getGeneration();

    /** Whether the callback is switched on. */
    boolean isEnabled();

    /** The age of the sidecar's last valid answer, ms; -1 before the first. */
    long getDocumentAgeMs();

    /** How many requests to the sidecar had no valid answer. */
    long getFailures();

    /** FREE, THROTTLED (factor 0), SCALED (factor between 0 and 1) or RAMP (after a release). */
    String getRegime();

    /** How many tag sets, of clients that share a quota, were paused in the throttle in force. */
    int getTagSetsThrottled();

    /** The longest pause of any client since the broker started, ms. */
    long getLongestPauseMs();

    /**
     * How long from now until all that has landed has passed at the leak budget, ms: the rest of the
     * last request's pause. 0 unless the factor is 0.
     */
    long getPauseInForceMs();

    /** Whether pauses may be longer, since a volume will be full soon despite the throttle. */
    boolean isEmergency();

    /**
     * Why some clients may not be throttled: outdated (the sidecar has a limit that this jar does not
     * know), self-test (no pause came out of Kafka's classes at the start), not-asked (Kafka records
     * requests and asks for no quotas), error (one was caught), or none. The log has the details.
     */
    String getFault();

    /** The age of the limits that the broker holds its own volumes against, ms; -1: it has none. */
    long getLimitsAgeMs();

    /** Whether produce requests are refused where a pause can't stop them: by the authorizer. */
    boolean isRefusing();

    /** How many produce requests were refused since the broker started. */
    long getRefusedTotal();

    /** Of those, how many of connections that are newer than the throttle. */
    long getRefusedNewConnections();

    /** How many below the stop line. */
    long getRefusedBelowStopLine();

    /** How many within seconds after a release, of connections that were refused before it. */
    long getRefusedAfterRelease();

    /**
     * The clients of which most were refused since the last throttle began, ten at most, the most
     * first: {@code alice/etl-1:9,bob/:1}, principal and client-id percent-encoded.
     */
    String getRefusedClients();

    /** How many connections that produced while not throttled are known. */
    int getConnectionsKnown();

    /** Whether refusals are kept out of the broker's own log. */
    boolean isRefusalLogFiltered();
}
