package throttlesidecar;

/** The settings that following a sidecar needs. */
final class Terms {
    private final String url;
    private final boolean enabled;
    private final double fallback;
    private final long rampMs;

    /**
     * Settings that were checked.
     *
     * @param url the sidecar's, for the log.
     * @param enabled whether it is followed at all.
     * @param fallback the factor without a valid document, within [0, 1].
     * @param rampMs how long a release takes, to its very end, ms.
     */
    Terms(String url, boolean enabled, double fallback, long rampMs) {
        this.url = url;
        this.enabled = enabled;
        this.fallback = fallback;
        this.rampMs = rampMs;
    }

    String url() {
        return url;
    }

    boolean enabled() {
        return enabled;
    }

    double fallback() {
        return fallback;
    }

    long rampMs() {
        return rampMs;
    }
}
