package throttlesidecar.volumes;

/**
 * From where on a volume is too full, by what is available: bytes, or a share of all bytes.
 *
 * <p>Example: a ratio of 0.1 is reached by a volume of 500 bytes with 50 available, not with 51. With a
 * margin of 0.02 it is left with 61 available, not with 60.
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
     * @param margin by how much more a volume has to have that reached it, at least 0.
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
     * Whether so few bytes are available.
     *
     * @param was whether the line was reached until now.
     */
    public boolean isReached(VolumeReadings.Volume volume, boolean was) {
        double line = was ? value + margin : value;
        return volume.availableBytes <= (isRatio ? line * volume.totalBytes : line);
    }
}
