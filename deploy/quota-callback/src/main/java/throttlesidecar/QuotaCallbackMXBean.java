package throttlesidecar;

/** What the quota callback does in this broker, as throttlesidecar:type=QuotaCallback in JMX. */
public interface QuotaCallbackMXBean {

    /** The factor for all by which produce quotas are multiplied, from 0 to 1. */
    double getFactorApplied();

    /** Whose word that is: SIDECAR, FALLBACK (nothing valid is known) or DISABLED. */
    String getSource();

    /** The sidecar's generation of what is in force; 0 when it is not the sidecar's. */
    long getGeneration();

    /** Whether the callback is switched on. */
    boolean isEnabled();

    /** How long ago the sidecar was heard, ms; -1 when it never was. */
    long getDocumentAgeMs();

    /** How many questions the sidecar did not answer, or not as it should. */
    long getFailures();

    /** What is done: FREE, STOPPED (factor 0), SCALED (between 0 and 1) or RAMP (after a release). */
    String getRegime();

    /** How many tag sets, of clients that share a quota, were paused in the throttle in force. */
    int getTagSetsThrottled();

    /** The longest pause that any client was given since the broker started, ms. */
    long getLongestPauseMs();

    /**
     * How long from now until all that has landed is let through by the leak budget, ms: what is
     * left of the pause that the last request was given. 0 unless the factor is 0.
     */
    long getPauseInForceMs();

    /** Whether pauses may be longer, since a volume will be full soon though clients are held. */
    boolean isEmergency();
}
