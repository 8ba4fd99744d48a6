package throttlesidecar.reading;

/** An answer that can't be used; the message is the reason. */
final class WrongAnswer extends Exception {
    private static final long serialVersionUID = 1L;

    private final boolean isOfLaterVersion;

    WrongAnswer(String message) {
        this(message, false);
    }

    private WrongAnswer(String message, boolean isOfLaterVersion) {
        super(message);
        this.isOfLaterVersion = isOfLaterVersion;
    }

    WrongAnswer(String message, Throwable cause) {
        super(message, cause);
        isOfLaterVersion = false;
    }

    /** A later version of the sidecar sent something that this jar has to know. */
    static WrongAnswer ofLaterVersion(String what) {
        return new WrongAnswer(
                what + ", which this jar does not know: this jar is older than the sidecar: update"
                        + " the jar",
                true);
    }

    /** Whether only an update of the jar helps. */
    boolean isOfLaterVersion() {
        return isOfLaterVersion;
    }
}
