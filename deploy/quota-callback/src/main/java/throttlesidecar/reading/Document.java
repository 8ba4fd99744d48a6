package throttlesidecar.reading;

import java.util.Map;
import throttlesidecar.decision.Budgets;
import throttlesidecar.decision.Scope;
import throttlesidecar.volumes.VolumeLine;

/**
 * The body of {@code GET /v1/quota-factors}. {@link DocumentReader} fills in its fields; nothing
 * changes them afterwards.
 */
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
    double factor = Double.NaN;

    /** Users with a factor of their own, by the principal's name as it is, not sanitised. */
    Map<String, Double> users = Map.of();

    /** Grows by one with each change of the sidecar's decision. */
    long generation;

    /** How long the document may be used, from the answer on. */
    long validForMs = -1;

    /** The sidecar's reason for the factor, fit for a log line; may be empty. */
    String reason = "";

    Source source = Source.OBSERVATION;

    /** Whether nothing is to be admitted: a volume is at or below the stop line. */
    boolean stops;

    /** The limit of every volume; null: there is none. */
    VolumeLine limit;

    /** The stop line of every volume; null: there is none. */
    VolumeLine stopLine;

    /** Whether only clients are throttled that write to full volumes. */
    boolean isOfVolumes;

    /** The requests that the factor for all is for. */
    Scope scope = Scope.ALL;

    /** The owners of topics that are past their storage budgets. */
    Budgets budgets = Budgets.NONE;

    /** The document as it was received. */
    byte[] body;
}
