package throttlesidecar.reading;

import java.util.Map;
import throttlesidecar.decision.Scope;
import throttlesidecar.volumes.VolumeLine;

/** The body of {@code GET /v1/quota-factors}, by the rules of {@link DocumentReader}. */
public final class Document {
    /** Where the factor for all comes from. */
    enum Source {
        /** Volumes that were seen. */
        OBSERVATION,
        /** The same, between soft limit and limit: the factor moves from answer to answer. */
        SLOPE,
        /** An override, or a sidecar that is switched off or only observes: whatever volumes have. */
        OPERATOR,
        /** The sidecar's fallback: it sees nothing. */
        NONE
    }

    private final Source source;
    private final boolean stops;
    private final VolumeLine limit;
    private final VolumeLine stopLine;
    private final byte[] body;
    private final boolean isOfVolumes;
    private final Scope scope;
    private final double factor;
    private final Map<String, Double> users;
    private final long generation;
    private final long validForMs;
    private final String reason;

    Document(
            double factor,
            Map<String, Double> users,
            long generation,
            long validForMs,
            String reason) {
        this(
                factor, users, generation, validForMs, reason,
                Source.OBSERVATION, false, null, null, false, Scope.ALL, null);
    }

    Document(
            double factor,
            Map<String, Double> users,
            long generation,
            long validForMs,
            String reason,
            Source source,
            boolean stops,
            VolumeLine limit,
            VolumeLine stopLine,
            boolean isOfVolumes,
            Scope scope,
            byte[] body) {
        this.source = source;
        this.stops = stops;
        this.limit = limit;
        this.stopLine = stopLine;
        this.isOfVolumes = isOfVolumes;
        this.scope = scope;
        this.body = body;
        this.factor = factor;
        this.users = Map.copyOf(users);
        this.generation = generation;
        this.validForMs = validForMs;
        this.reason = reason;
    }

    /** By which every produce quota is multiplied, within [0, 1]. */
    double factor() {
        return factor;
    }

    /** Users with a factor of their own, by the principal's name as it is, not sanitised. */
    Map<String, Double> users() {
        return users;
    }

    /** Grows by one with each change of the sidecar's decision. */
    long generation() {
        return generation;
    }

    /** For how long it may be used from the answer on, ms. */
    long validForMs() {
        return validForMs;
    }

    /** Why the factor is what it is, in the sidecar's words, fit for a log line; may be empty. */
    String reason() {
        return reason;
    }

    Source source() {
        return source;
    }

    /** Whether nothing is to be admitted: a volume is at or below the stop line. */
    boolean stops() {
        return stops;
    }

    /** From where on the volumes of this cluster throttle; null: nowhere, or not known. */
    VolumeLine limit() {
        return limit;
    }

    /** From where on they stop; null likewise. */
    VolumeLine stopLine() {
        return stopLine;
    }

    /** Whose requests the factor is for. */
    Scope scope() {
        return scope;
    }

    /** Whether that is of who writes to full volumes, as far as what lies there is known. */
    boolean isOfVolumes() {
        return isOfVolumes;
    }

    /** What was received, to be kept; null where it was not received. */
    byte[] body() {
        return body;
    }
}
