package throttlesidecar;

/** An answer that can't be used; the message is the reason. */
final class WrongAnswer extends Exception {
    private static final long serialVersionUID = 1L;

    WrongAnswer(String message) {
        super(message);
    }

    WrongAnswer(String message, Throwable cause) {
        super(message, cause);
    }
}
