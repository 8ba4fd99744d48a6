package throttlesidecar.jmx;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import throttlesidecar.reading.SidecarReader;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.Enforcement;

/** What the quota callback does, for JMX and, in headers of its requests, for its sidecar. */
public final class CallbackFigures implements QuotaCallbackMXBean {
    private final Integer nodeId;
    private final Supplier<Settings> settings;
    private final Enforcement enforcement;
    private final Refusals refusals;
    private final SidecarReader follower;

    /**
     * Reads what these have, whenever it is asked.
     *
     * @param nodeId the broker's; null when it has none yet.
     */
    public CallbackFigures(
            Integer nodeId,
            Supplier<Settings> settings,
            Enforcement enforcement,
            Refusals refusals,
            SidecarReader follower) {
        this.nodeId = nodeId;
        this.settings = settings;
        this.enforcement = enforcement;
        this.refusals = refusals;
        this.follower = follower;
    }

    /** The headers of a request to the sidecar. */
    public Map<String, String> headers() {
        Map<String, String> headers = new HashMap<>();
        if (nodeId != null) {
            Enforcement.Figures figures = enforcement.figures();
            // Older sidecars take no report that has more than these three.
            String fault = getFault();
            headers.put(
                    "Throttle-Reader",
                    String.format(
                            "broker=%d; emergency=%b; throttled_clients=%d",
                            nodeId, figures.emergency, figures.tagSetsThrottled)
                            + (fault.equals("none") ? "" : "; fault=" + fault));
            if (refusals.hasAuthorizer()) {
                headers.put("Throttle-Refused", refusedHeader());
            }
            String inScope = enforcement.clientsInScope();
            if (!inScope.isEmpty()) {
                headers.put("Throttle-Scope", "clients=" + inScope);
            }
        }
        return headers;
    }

    private String refusedHeader() {
        String clients = getRefusedClients();
        return String.format(
                "new_connection=%d; stop_line=%d; release=%d%s%s", getRefusedNewConnections(),
                getRefusedBelowStopLine(), getRefusedAfterRelease(),
                clients.isEmpty() ? "" : "; clients=" + clients,
                isRefusalLogFiltered() ? "" : "; logged=true");
    }

    @Override
    public double getFactorApplied() {
        return enforcement.figures().factors.global;
    }

    @Override
    public String getSource() {
        return enforcement.figures().factors.source.name();
    }

    @Override
    public long getGeneration() {
        return enforcement.figures().factors.generation;
    }

    @Override
    public boolean isEnabled() {
        return settings.get().enabled;
    }

    @Override
    public long getDocumentAgeMs() {
        return follower.ageMs();
    }

    @Override
    public long getFailures() {
        return follower.failures();
    }

    @Override
    public String getRegime() {
        return enforcement.figures().mode.name();
    }

    @Override
    public int getTagSetsThrottled() {
        return enforcement.figures().tagSetsThrottled;
    }

    @Override
    public long getLongestPauseMs() {
        return enforcement.figures().longestPauseMs;
    }

    @Override
    public long getPauseInForceMs() {
        return enforcement.figures().pauseInForceMs;
    }

    @Override
    public boolean isEmergency() {
        return enforcement.figures().emergency;
    }

    @Override
    public String getFault() {
        return enforcement.faults().worst();
    }

    @Override
    public long getLimitsAgeMs() {
        return follower.limitsAgeMs();
    }

    @Override
    public boolean isRefusing() {
        return refusals.hasAuthorizer() && settings.get().enabled && settings.get().refuses;
    }

    @Override
    public long getRefusedTotal() {
        return refusals.total();
    }

    @Override
    public long getRefusedNewConnections() {
        return refusals.count(Refusals.Reason.NEW_CONNECTION);
    }

    @Override
    public long getRefusedBelowStopLine() {
        return refusals.count(Refusals.Reason.STOP_LINE);
    }

    @Override
    public long getRefusedAfterRelease() {
        return refusals.count(Refusals.Reason.RELEASE);
    }

    @Override
    public String getRefusedClients() {
        return refusals.mostRefused();
    }

    @Override
    public int getConnectionsKnown() {
        return refusals.connections();
    }

    @Override
    public boolean isRefusalLogFiltered() {
        return refusals.isLogFiltered();
    }
}
