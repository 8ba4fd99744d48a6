package throttlesidecar.reading;

import java.util.Map;
import throttlesidecar.decision.Scope;
import throttlesidecar.volumes.VolumeLine;

/** The body of {@code GET /v1/quota-factors}, by the rules of {@link DocumentReader}. */
public final class Document {
    /** Where the factor for all comes from. */
    enum Source {
        /** The volumes that the sidecar observed. */
        OBSERVATION,
        /** The same, between soft limit and limit: the factor moves from answer to answer. */
        SLOPE,
        /** An operator: an override, or a sidecar that is switched off or only observes. */
        OPERATOR,
        /** The sidecar's fallback: it has no observation. */
        NONE
    }

    /** The factor for all, by which every produce quota is multiplied, from 0 to 1. */
    final double factor;

    /** Users with a factor of their own, by the principal's name as it is, not sanitised. */
    final Map<String, Double> users;

    /** Grows by one with each change of the sidecar's decision. */
    final long generation;

    /** For how long the document may be used, from the answer on. */
    final long validForMs;

    /** The sidecar's reason for the factor, fit for a log line; may be empty. */
    final String reason;

    final Source source;

    /** Whether nothing is to be admitted: a volume is at or below the stop line. */
    final boolean stops;

    /** The limit of every volume; null: there is none. */
    final VolumeLine limit;

    /** The stop line of every volume; null: there is none. */
    final VolumeLine stopLine;

    /** Whether only clients are throttled that write to full volumes. */
    final boolean isOfVolumes;

    /** The requests that the factor for all is for. */
    final Scope scope;

    /** The document as it was received; null in tests. */
    final byte[] body;

    Document(
            double factor, Map<String, Double> users, long generation, long validForMs, String reason) {
        this(
                factor, users, generation, validForMs, reason, Source.OBSERVATION, false, null, null,
                false, Scope.ALL, null);
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
        this.factor = factor;
        this.users = Map.copyOf(users);
        this.generation = generation;
        this.validForMs = validForMs;
        this.reason = reason;
        this.source = source;
        this.stops = stops;
        this.limit = limit;
        this.stopLine = stopLine;
        this.isOfVolumes = isOfVolumes;
        this.scope = scope;
        this.body = body;
    }
}
