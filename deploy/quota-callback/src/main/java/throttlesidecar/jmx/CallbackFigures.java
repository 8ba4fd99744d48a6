package throttlesidecar.jmx;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.function.Supplier;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import throttlesidecar.reading.SidecarReader;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.settings.Settings;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.volumes.Reserves;

/**
 * The figures of the quota callback. JMX has them as throttlesidecar:type=QuotaCallback, and the
 * sidecar gets them in the headers of requests.
 */
public final class CallbackFigures implements DynamicMBean {
    /** Kafka's class for its version has moved, its file has not. */
    private static final String KAFKA_VERSION = version("/kafka/kafka-version.properties");

    private static final String JAR_VERSION = version(
            "/META-INF/maven/throttlesidecar/throttle-sidecar-quota-callback/pom.properties");

    private final Integer nodeId;
    private final Enforcement enforcement;
    private final Connections connections;
    private final Refusals refusals;
    private final Reserves reserves;

    /** The current value by name. */
    private final Map<String, Supplier<Object>> attributes = new LinkedHashMap<>();

    private final List<MBeanAttributeInfo> infos = new ArrayList<>();

    /**
     * Reads the figures of these whenever they are asked for.
     *
     * @param nodeId the broker's; null when it has none yet.
     */
    public CallbackFigures(
            Integer nodeId, Supplier<Settings> settings, Enforcement enforcement, Connections connections,
            Refusals refusals, SidecarReader reader, Reserves reserves) {
        this.nodeId = nodeId;
        this.reserves = reserves;
        this.enforcement = enforcement;
        this.connections = connections;
        this.refusals = refusals;
        add("FactorApplied", () -> enforcement.figures().factors.global,
                "The factor for all by which produce quotas are multiplied, from 0 to 1.");
        add("Source", () -> enforcement.figures().factors.source.name(),
                "Where the factor comes from: SIDECAR, LOCAL (a volume of this broker is too full),"
                        + " FORECAST (the last one of a sidecar), FALLBACK (no document is valid) or"
                        + " DISABLED.");
        add("Generation", () -> enforcement.figures().factors.generation,
                "The generation of the sidecar's document that applies; 0 when none does.");
        add("Enabled", () -> settings.get().enabled, "Whether the callback is switched on.");
        add("DocumentAgeMs", reader::ageMs,
                "The age of the sidecar's last valid answer; -1 before the first.");
        add("Failures", reader::failures, "How many requests to the sidecar had no valid answer.");
        add("Regime", () -> enforcement.figures().mode.name(),
                "FREE, THROTTLED (factor 0), SCALED (a factor between 0 and 1) or RAMP (after a"
                        + " release).");
        add("TagSetsThrottled", () -> enforcement.figures().tagSetsThrottled,
                "How many tag sets, of clients that share a quota, this throttle has paused.");
        add("LongestPauseMs", () -> enforcement.figures().longestPauseMs,
                "The longest pause of any client since the broker started.");
        add("PauseInForceMs", () -> enforcement.figures().pauseInForceMs,
                "The rest of the last request's pause, until all that has landed has passed at the"
                        + " leak budget; 0 unless the factor is 0.");
        add("Emergency", this::isEmergency,
                "Whether pauses may be longer, since a volume will be full soon despite the throttle.");
        add("Fault", () -> enforcement.faults().worst(),
                "Why some clients may not be throttled: outdated (the sidecar has a limit that this jar"
                        + " does not know), self-test (at the start, Kafka's classes did not pause a"
                        + " request), not-refused (the authorizer refuses nothing), not-asked (Kafka records requests without asking for quotas), error"
                        + " (an error was caught), or none. The log has the details.");
        add("LimitsAgeMs", reader::limitsAgeMs,
                "The age of the limits for this broker's own volumes; -1: it has none.");
        add("Refusing",
                () -> connections.hasAuthorizer() && settings.get().enabled && settings.get().refuses,
                "Whether the authorizer refuses produce requests that a pause can't stop.");
        add("RefusedTotal", refusals::total,
                "How many produce requests were refused since the broker started.");
        add("RefusedNewConnections", () -> refusals.count(Refusals.Reason.NEW_CONNECTION),
                "How many of them came on connections that are newer than the throttle.");
        add("RefusedBelowStopLine", () -> refusals.count(Refusals.Reason.STOP_LINE),
                "How many of them came while a volume was below the stop line.");
        add("RefusedByBudget", () -> refusals.count(Refusals.Reason.BUDGET),
                "How many wrote to topics whose owner had used up its storage budget.");
        add("RefusedAfterRelease", () -> refusals.count(Refusals.Reason.RELEASE),
                "How many came within seconds after a release, on connections refused before it.");
        add("RefusedClients", refusals::mostRefused,
                "The clients with the most refused requests since the last throttle began, ten at most:"
                        + " alice/etl-1:9,bob/:1, principal and client-id percent-encoded.");
        add("ConnectionsKnown", connections::size,
                "How many connections are known that produced while not throttled.");
        add("RefusalLogFiltered", refusals::isLogFiltered,
                "Whether refusals are kept out of the broker's own log.");
        add("Reserves", reserves::report,
                "The bytes of the reserve in each log dir, whose path is percent-encoded:"
                        + " %2Fdata:1073741824; 0 bytes: the broker started from it.");
        add("ReservesFailing", reserves::failing,
                "In how many log dirs the reserve could not be made or deleted.");
    }

    private void add(String name, Supplier<Object> value, String description) {
        attributes.put(name, value);
        String type = value.get().getClass().getName();
        infos.add(new MBeanAttributeInfo(name, type, description, true, false, false));
    }

    /** The headers of a request to the sidecar. */
    public Map<String, String> headers() {
        Map<String, String> headers = new HashMap<>();
        if (nodeId != null) {
            Enforcement.Figures figures = enforcement.figures();
            // Older sidecars refuse a report with more than these three members.
            String fault = enforcement.faults().worst();
            headers.put(
                    "Throttle-Reader",
                    String.format(
                            Locale.ROOT,
                            "broker=%d; emergency=%b; throttled_clients=%d",
                            nodeId, figures.emergency, figures.tagSetsThrottled)
                            + (fault.equals("none") ? "" : "; fault=" + fault));
            headers.put("Throttle-Kafka", KAFKA_VERSION);
            headers.put("Throttle-Jar", JAR_VERSION);
            if (connections.hasAuthorizer()) {
                headers.put("Throttle-Refused", refusedHeader());
            }
            if (!reserves.report().isEmpty()) {
                headers.put("Throttle-Reserve", reserves.report());
            }
            String inScope = enforcement.clientsInScope();
            if (!inScope.isEmpty()) {
                headers.put("Throttle-Scope", "clients=" + inScope);
            }
        }
        return headers;
    }

    /** The version in a file on the class path; "" if it is unknown. */
    private static String version(String path) {
        Properties versions = new Properties();
        try (InputStream file = CallbackFigures.class.getResourceAsStream(path)) {
            versions.load(file);
        } catch (IOException | RuntimeException unknown) {
            return "";
        }
        return versions.getProperty("version", "");
    }

    private String refusedHeader() {
        String clients = refusals.mostRefused();
        return String.format(
                Locale.ROOT,
                "new_connection=%d; stop_line=%d; release=%d%s%s",
                refusals.count(Refusals.Reason.NEW_CONNECTION),
                refusals.count(Refusals.Reason.STOP_LINE), refusals.count(Refusals.Reason.RELEASE),
                clients.isEmpty() ? "" : "; clients=" + clients,
                refusals.isLogFiltered() ? "" : "; logged=true");
    }

    public boolean isEmergency() {
        return enforcement.figures().emergency;
    }

    @Override
    public Object getAttribute(String name) throws AttributeNotFoundException {
        if (!attributes.containsKey(name)) {
            throw new AttributeNotFoundException(name);
        }
        return attributes.get(name).get();
    }

    @Override
    public AttributeList getAttributes(String[] names) {
        AttributeList found = new AttributeList();
        for (String name : names) {
            if (attributes.containsKey(name)) {
                found.add(new Attribute(name, attributes.get(name).get()));
            }
        }
        return found;
    }

    @Override
    public MBeanInfo getMBeanInfo() {
        return new MBeanInfo(
                getClass().getName(), "The quota callback of this broker",
                infos.toArray(new MBeanAttributeInfo[0]), null, null, null);
    }

    @Override
    public void setAttribute(Attribute attribute) throws AttributeNotFoundException {
        throw new AttributeNotFoundException("read-only: " + attribute.getName());
    }

    @Override
    public AttributeList setAttributes(AttributeList changes) {
        return new AttributeList();
    }

    @Override
    public Object invoke(String action, Object[] arguments, String[] signature) {
        throw new UnsupportedOperationException(action);
    }
}
