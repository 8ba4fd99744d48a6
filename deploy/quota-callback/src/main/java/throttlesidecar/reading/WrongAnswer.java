package throttlesidecar.reading;

/** An answer that can't be used; the message is the reason. */
final class WrongAnswer extends Exception {
    private static final long serialVersionUID = 1L;

    private final boolean isOfLaterVersion;

    WrongAnswer(String message) {
        this(message, null, false);
    }

    WrongAnswer(String message, Throwable cause) {
        this(message, cause, false);
    }

    private WrongAnswer(String message, Throwable cause, boolean isOfLaterVersion) {
        super(message, cause);
        this.isOfLaterVersion = isOfLaterVersion;
    }

    /** A newer sidecar sent something that this jar would have to know. */
    static WrongAnswer ofLaterVersion(String what) {
        String line = ", which this jar does not know: update the jar, which is older than the sidecar";
        return new WrongAnswer(what + line, null, true);
    }

    /** Whether the jar must be updated. */
    boolean isOfLaterVersion() {
        return isOfLaterVersion;
    }
}
