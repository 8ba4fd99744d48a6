package throttlesidecar;

/** The outcome of one request to the sidecar: a document, Not Modified, or a failure. */
final class Answer {
    private final Document document;
    private final String etag;
    private final long validForMs;
    private final double secondsToFull;
    private final long atNanos;
    private final long observedMsAgo;
    private final String failure;

    private Answer(
            Document document,
            String etag,
            long validForMs,
            double secondsToFull,
            long atNanos,
            long observedMsAgo,
            String failure) {
        this.document = document;
        this.etag = etag;
        this.validForMs = validForMs;
        this.secondsToFull = secondsToFull;
        this.atNanos = atNanos;
        this.observedMsAgo = observedMsAgo;
        this.failure = failure;
    }

    /**
     * A document.
     *
     * @param etag sent with the next request; null when the answer has none.
     * @param atNanos when the answer began, on the monotonic clock.
     */
    static Answer modified(Document document, String etag, long atNanos) {
        return modified(document, etag, atNanos, 0);
    }

    /**
     * The same.
     *
     * @param observedMsAgo how old the observation behind it was, ms; 0 where the sidecar does not say.
     */
    static Answer modified(Document document, String etag, long atNanos, long observedMsAgo) {
        return new Answer(
                document,
                etag,
                document.validForMs(),
                document.secondsToFull(),
                atNanos,
                observedMsAgo,
                null);
    }

    /**
     * The last document is valid for longer.
     *
     * @param validForMs for how long, from atNanos.
     * @param secondsToFull as {@link Document#secondsToFull()}.
     */
    static Answer notModified(long validForMs, double secondsToFull, long atNanos) {
        return notModified(validForMs, secondsToFull, atNanos, 0);
    }

    /** The same, with the age of the observation as in {@link #modified}. */
    static Answer notModified(
            long validForMs, double secondsToFull, long atNanos, long observedMsAgo) {
        return new Answer(null, null, validForMs, secondsToFull, atNanos, observedMsAgo, null);
    }

    /** No valid answer came. */
    static Answer failed(String reason) {
        return new Answer(null, null, 0, Double.NaN, 0, 0, reason);
    }

    /** Whether no valid answer came. */
    boolean isFailure() {
        return failure != null;
    }

    /** Why it failed, fit for a log line; null when it did not. */
    String failure() {
        return failure;
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

    double secondsToFull() {
        return secondsToFull;
    }

    long atNanos() {
        return atNanos;
    }

    /** How old the observation behind it was when it was given, ms. */
    long observedMsAgo() {
        return observedMsAgo;
    }
}
