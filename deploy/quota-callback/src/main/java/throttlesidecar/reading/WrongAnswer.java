package throttlesidecar.reading;

/** An answer that can't be used; the message is the reason. */
final class WrongAnswer extends Exception {
    private static final long serialVersionUID = 1L;

    /** Whether the jar must be updated. */
    boolean isOfLaterVersion;

    WrongAnswer(String message) {
        super(message);
    }

    WrongAnswer(String message, Throwable cause) {
        super(message, cause);
    }

    /** A newer sidecar sent something that this jar would have to know. */
    static WrongAnswer ofLaterVersion(String what) {
        WrongAnswer wrong = new WrongAnswer(
                what + ", which this jar does not know: update the jar, which is older than the sidecar");
        wrong.isOfLaterVersion = true;
        return wrong;
    }
}
