package throttlesidecar.reading;

import throttlesidecar.decision.Leak;

/** The outcome of one request to the sidecar: a document, Not Modified, or a failure. */
public final class Answer {
    private final Document document;
    private final String etag;
    private final long validForMs;
    private final Leak leak;
    private final long atNanos;
    private final long observedMsAgo;
    private final long limitInMs;
    private final double factor;
    private final String failure;
    private final boolean isOfLaterVersion;

    private Answer(
            Document document,
            String etag,
            long validForMs,
            Leak leak,
            long atNanos,
            long observedMsAgo,
            long limitInMs,
            double factor,
            String failure,
            boolean isOfLaterVersion) {
        this.document = document;
        this.etag = etag;
        this.validForMs = validForMs;
        this.leak = leak;
        this.atNanos = atNanos;
        this.observedMsAgo = observedMsAgo;
        this.limitInMs = limitInMs;
        this.factor = factor;
        this.failure = failure;
        this.isOfLaterVersion = isOfLaterVersion;
    }

    /**
     * A document.
     *
     * @param etag sent with the next request; null when the answer has none.
     * @param atNanos when the answer began, on the monotonic clock.
     */
    static Answer modified(Document document, String etag, long atNanos) {
        return modified(document, etag, Leak.WHOLE, atNanos, 0);
    }

    /**
     * The same.
     *
     * @param leak of the broker that asked.
     * @param observedMsAgo how old the observation behind it was, ms; 0 where the sidecar does not say.
     */
    static Answer modified(
            Document document, String etag, Leak leak, long atNanos, long observedMsAgo) {
        return new Answer(
                document,
                etag,
                document.validForMs(),
                leak,
                atNanos,
                observedMsAgo,
                -1,
                Double.NaN,
                null,
                false);
    }

    /**
     * The last document is valid for longer.
     *
     * @param validForMs for how long, from atNanos.
     * @param leak of the broker that asked.
     */
    static Answer notModified(long validForMs, Leak leak, long atNanos) {
        return notModified(validForMs, leak, atNanos, 0);
    }

    /** The same, with the age of the observation as in {@link #modified}. */
    static Answer notModified(long validForMs, Leak leak, long atNanos, long observedMsAgo) {
        return new Answer(
                null, null, validForMs, leak, atNanos, observedMsAgo, -1, Double.NaN, null, false);
    }

    /** No valid answer came. */
    static Answer failed(String reason) {
        return new Answer(null, null, 0, Leak.WHOLE, 0, 0, -1, Double.NaN, reason, false);
    }

    /** An answer came that can't be used. */
    static Answer failed(WrongAnswer wrong) {
        return new Answer(
                null, null, 0, Leak.WHOLE, 0, 0, -1, Double.NaN,
                "the answer is wrong: " + wrong.getMessage(), wrong.isOfLaterVersion());
    }

    /** The same answer, with {@link #limitInMs}. */
    Answer limitIn(long ms) {
        return new Answer(
                document, etag, validForMs, leak, atNanos, observedMsAgo, ms, factor, failure,
                isOfLaterVersion);
    }

    /** The same answer, with {@link #factor}. */
    Answer factor(double now) {
        return new Answer(
                document, etag, validForMs, leak, atNanos, observedMsAgo, limitInMs, now, failure,
                isOfLaterVersion);
    }

    /** Whether no valid answer came. */
    boolean isFailure() {
        return failure != null;
    }

    /** Why it failed, fit for a log line; null when it did not. */
    String failure() {
        return failure;
    }

    /** Whether the jar has to be updated before it can use the sidecar's answers. */
    boolean isOfLaterVersion() {
        return isOfLaterVersion;
    }

    /** The document; null when it is not modified, or after a failure. */
    Document document() {
        return document;
    }

    String etag() {
        return etag;
    }

    long validForMs() {
        return validForMs;
    }

    /** How much the broker that asked may let through; it moves without a new document. */
    Leak leak() {
        return leak;
    }

    long atNanos() {
        return atNanos;
    }

    /** How old the observation behind it was when it was given, ms. */
    long observedMsAgo() {
        return observedMsAgo;
    }

    /** How soon the first volume is at its limit if all fill as they did, ms; -1: not soon. */
    long limitInMs() {
        return limitInMs;
    }

    /** The factor of now, where it moves without another document; NaN: the document's. */
    double factor() {
        return factor;
    }
}
