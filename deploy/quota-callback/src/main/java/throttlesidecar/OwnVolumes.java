package throttlesidecar;

import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;

/**
 * Holds what the broker's own eyes see against the limits that the sidecar published last.
 *
 * <p>A volume counts when it is at or below a line, and no longer when it is above: by a tenth of the
 * line where it stopped, as the sidecar judges it.
 */
final class OwnVolumes {
    /** As the sidecar's margin of the stop line. */
    private static final double STOP_MARGIN = 0.1;

    private VolumeReadings readings = VolumeReadings.NONE;
    private boolean stopped;

    void see(VolumeReadings newReadings) {
        readings = newReadings;
    }

    /** Whether a volume is at or below the limit. */
    boolean violate(VolumeLine limit) {
        return limit != null
                && readings.volumes().values().stream().anyMatch(volume -> limit.isReached(volume, 0.0));
    }

    /**
     * Whether a volume that violates the limit is at or below the stop line, or was and is not above it
     * by the margin. Nothing stops that does not throttle, wherever the line lies.
     */
    boolean stop(VolumeLine limit, VolumeLine line) {
        double margin = stopped ? STOP_MARGIN : 0.0;
        stopped = limit != null
                && line != null
                && readings.volumes().values().stream()
                        .filter(volume -> limit.isReached(volume, 0.0))
                        .anyMatch(volume -> line.isReached(volume, margin));
        return stopped;
    }

    /** Which volumes are at or below the limit, for the log. */
    String reason(VolumeLine limit) {
        TreeSet<String> full = new TreeSet<>();
        for (Map.Entry<String, VolumeReadings.Volume> each : readings.volumes().entrySet()) {
            if (limit.isReached(each.getValue(), 0.0)) {
                full.add(
                        String.format(
                                Locale.ROOT,
                                "%s of this broker has %d bytes available of %d",
                                each.getKey(),
                                each.getValue().availableBytes(),
                                each.getValue().totalBytes()));
            }
        }
        return String.join(", ", full);
    }
}
