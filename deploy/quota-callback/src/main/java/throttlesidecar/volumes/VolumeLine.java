package throttlesidecar.volumes;

/**
 * A line below which a volume is too full: a number of available bytes, or a share of all bytes.
 *
 * <p>Example: a volume of 500 bytes reaches a ratio of 0.1 with 50 bytes available, but not with 51.
 * With a margin of 0.02, it leaves the line with 61 bytes available, but not with 60.
 */
public final class VolumeLine {
    private final boolean isRatio;
    private final double value;
    private final double margin;

    /**
     * A line.
     *
     * @param isRatio whether the values are shares of the volume's bytes; else bytes.
     * @param value at least 0.
     * @param margin a volume that reached the line leaves it when it is above value + margin; at least 0.
     */
    public VolumeLine(boolean isRatio, double value, double margin) {
        this.isRatio = isRatio;
        this.value = value;
        this.margin = margin;
    }

    /** The same line with another margin. */
    public VolumeLine withMargin(double other) {
        return new VolumeLine(isRatio, value, other);
    }

    /** The same line with a share of its value as the margin. */
    VolumeLine withMarginOf(double share) {
        return withMargin(share * value);
    }

    /**
     * Whether a volume has so few bytes available.
     *
     * @param was whether the line was reached until now.
     */
    public boolean isReached(Volume volume, boolean was) {
        double line = was ? value + margin : value;
        return volume.availableBytes <= (isRatio ? line * volume.totalBytes : line);
    }
}
