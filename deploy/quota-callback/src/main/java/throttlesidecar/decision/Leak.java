package throttlesidecar.decision;

import throttlesidecar.settings.Settings;

/**
 * How much of its leak budget a broker may let through while the factor is 0, and how long its pauses
 * may be. The sidecar decides this, so that no volume fills although producers are throttled.
 *
 * <p>Example: a share of 0.1 and pauses of 40 s. Of a budget of 60 kB/s, 6 kB/s may pass, and pauses
 * may be ten times as long as the default.
 */
public final class Leak {
    static final double LEAST = 0.001;

    /** The budget and the pauses of this broker's own settings. */
    public static final Leak WHOLE = new Leak(1.0, 0);

    /** The smallest leak that pauses can achieve, with the longest pauses. */
    static final Leak SMALLEST = new Leak(LEAST, Long.MAX_VALUE);

    public final double share;
    private final long pauseMaxMs;

    /**
     * A sidecar's decision.
     *
     * @param share of the broker's leak budget; kept between {@link #LEAST} and 1.
     * @param pauseMaxMs the longest pause; the broker's own longest pause counts if it is longer.
     */
    public Leak(double share, long pauseMaxMs) {
        this.share = Math.min(1.0, Math.max(LEAST, share));
        this.pauseMaxMs = pauseMaxMs;
    }

    /** The longest pause by this and the broker's settings, ms. */
    public long pauseMaxMs(Settings limits) {
        return Math.min(limits.emergencyPauseMaxMs, Math.max(limits.pauseMaxMs, pauseMaxMs));
    }

    /** Whether the disk has priority over the clients. */
    public boolean isEmergency() {
        return share < 1.0;
    }
}
