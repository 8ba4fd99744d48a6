package throttlesidecar.reading;

import throttlesidecar.decision.Leak;

/** The outcome of one request to a sidecar: a document, Not Modified, or a failure. */
public final class Answer {
    /** The reason of a failure, fit for a log line; null when there is none. */
    String failure;

    /** Whether the jar must be updated before it can use the sidecar's answers. */
    boolean isOfLaterVersion;

    /** The document; null if it is not modified, or after a failure. */
    Document document;

    /** The document's entity tag, for the next request; null: it has none. */
    String etag;

    /** How long the document is valid, from {@link #atNanos} on. */
    long validForMs;

    /** How much the asking broker may let through. It may change without a new document. */
    Leak leak = Leak.WHOLE;

    /** When the answer began, on the monotonic clock. */
    long atNanos;

    /** How old the sidecar's observation was then, ms; 0 if unknown. */
    long observedMsAgo;

    /** The time until the first volume reaches its limit at the current rates, ms; -1: not soon. */
    long limitInMs = -1;

    /** The current factor, if it changes without a new document; NaN: the document's factor applies. */
    double factor = Double.NaN;

    private Answer() {}

    static Answer modified(Document document, String etag, long atNanos) {
        Answer answer = notModified(document.validForMs, Leak.WHOLE, atNanos);
        answer.document = document;
        answer.etag = etag;
        return answer;
    }

    static Answer notModified(long validForMs, Leak leak, long atNanos) {
        Answer answer = new Answer();
        answer.validForMs = validForMs;
        answer.leak = leak;
        answer.atNanos = atNanos;
        return answer;
    }

    /** No answer arrived. */
    static Answer failed(String reason) {
        Answer answer = new Answer();
        answer.failure = reason;
        return answer;
    }

    /** An answer arrived that can't be used. */
    static Answer failed(WrongAnswer wrong) {
        Answer answer = failed("the answer is wrong: " + wrong.getMessage());
        answer.isOfLaterVersion = wrong.isOfLaterVersion;
        return answer;
    }

    boolean isFailure() {
        return failure != null;
    }
}
