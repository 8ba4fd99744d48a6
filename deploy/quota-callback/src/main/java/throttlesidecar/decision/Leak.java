package throttlesidecar.decision;

import throttlesidecar.settings.Settings;

/**
 * How much of its leak budget a broker may let through while the factor is 0, and how long its pauses
 * may be: as the sidecar decides, so that no volume fills although producers are throttled.
 *
 * <p>Example: a share of 0.1 and pauses of 40 s: of a budget of 60 kB/s 6 kB/s, or ten requests in a
 * tenth of the time.
 */
public final class Leak {
    /** The smallest share. */
    static final double LEAST = 0.001;

    /** The budget and the pauses of this broker's own settings. */
    public static final Leak WHOLE = new Leak(1.0, 0);

    /** As little as pauses can do, for as long as they may last. */
    static final Leak SMALLEST = new Leak(LEAST, Long.MAX_VALUE);

    private final double share;
    private final long pauseMaxMs;

    /**
     * As a sidecar decides.
     *
     * @param share of the broker's leak budget; kept within {@link #LEAST} and 1.
     * @param pauseMaxMs the longest pause; no shorter one than the broker's own counts.
     */
    public Leak(double share, long pauseMaxMs) {
        this.share = Math.min(1.0, Math.max(LEAST, share));
        this.pauseMaxMs = pauseMaxMs;
    }

    public double share() {
        return share;
    }

    /** The longest pause by this and the broker's settings, ms. */
    public long pauseMaxMs(Settings limits) {
        return Math.min(limits.emergencyPauseMaxMs, Math.max(limits.pauseMaxMs, pauseMaxMs));
    }

    /** Whether the disk is put before the clients. */
    public boolean isEmergency() {
        return share < 1.0;
    }
}
