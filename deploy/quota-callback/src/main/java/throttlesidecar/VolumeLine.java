package throttlesidecar;

/**
 * From where on a volume is too full, by what is available: bytes, or a share of all bytes.
 *
 * <p>Example: a ratio of 0.1 is reached by a volume of 500 bytes with 50 available, not with 51; with
 * a margin of a tenth it is reached until 56 are available.
 */
final class VolumeLine {
    private final boolean isRatio;
    private final double value;

    /**
     * A line.
     *
     * @param isRatio whether the value is a share of the volume's bytes; else bytes.
     * @param value at least 0.
     */
    VolumeLine(boolean isRatio, double value) {
        this.isRatio = isRatio;
        this.value = value;
    }

    /** Whether so few bytes are available, or so few and a share of the line's besides. */
    boolean isReached(VolumeReadings.Volume volume, double margin) {
        double bytes = isRatio ? value * volume.totalBytes() : value;
        return volume.availableBytes() <= bytes * (1.0 + margin);
    }
}
