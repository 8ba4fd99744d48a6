package throttlesidecar;

/** An answer that says nothing which may be used; its message says what is wrong with it. */
final class WrongAnswer extends Exception {
    private static final long serialVersionUID = 1L;

    WrongAnswer(String message) {
        super(message);
    }

    WrongAnswer(String message, Throwable cause) {
        super(message, cause);
    }
}
