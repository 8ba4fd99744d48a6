package throttlesidecar;

/** What came of asking the sidecar once: news, that there are none, or a failure. */
final class Answer {
    private final Document document;
    private final String etag;
    private final long validForMs;
    private final double secondsToFull;
    private final long atNanos;
    private final String failure;

    private Answer(
            Document document,
            String etag,
            long validForMs,
            double secondsToFull,
            long atNanos,
            String failure) {
        this.document = document;
        this.etag = etag;
        this.validForMs = validForMs;
        this.secondsToFull = secondsToFull;
        this.atNanos = atNanos;
        this.failure = failure;
    }

    /**
     * A document.
     *
     * @param etag to be sent with the next question; null when it came without one.
     * @param atNanos when the answer began, on the clock that never goes back.
     */
    static Answer news(Document document, String etag, long atNanos) {
        return new Answer(
                document, etag, document.validForMs(), document.secondsToFull(), atNanos, null);
    }

    /**
     * The document that is known still holds.
     *
     * @param validForMs for how long, from atNanos.
     * @param secondsToFull as {@link Document#secondsToFull()}.
     */
    static Answer unchanged(long validForMs, double secondsToFull, long atNanos) {
        return new Answer(null, null, validForMs, secondsToFull, atNanos, null);
    }

    /** Nothing that may be used. */
    static Answer failed(String reason) {
        return new Answer(null, null, 0, Double.NaN, 0, reason);
    }

    /** Whether nothing came that may be used. */
    boolean isFailure() {
        return failure != null;
    }

    /** What failed, fit for a log line; null when nothing did. */
    String failure() {
        return failure;
    }

    /** The document; null unless there are news. */
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
}
