package throttlesidecar.volumes;

import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import throttlesidecar.decision.Scope;

/**
 * Compares the readings of the broker's own volumes with the limits that the sidecar published last.
 *
 * <p>A volume counts from when it is at or below a line until it is above that line by a margin, as in
 * the sidecar. The margin is the limit's own, or a tenth of the stop line.
 */
public final class OwnVolumes {
    /** The sidecar's margin of the stop line. */
    private static final double STOP_MARGIN = 0.1;

    /** By log dir; none before the first reading. */
    private Map<String, Volume> volumes = Map.of();

    private Set<String> violating = Set.of();
    private boolean stopped;

    public void take(Map<String, Volume> readings) {
        volumes = readings;
    }

    /**
     * Whether a volume is at or below the limit, or was and is not yet above it by the margin, or
     * the broker uses its reserve there.
     *
     * @param limit null for none.
     */
    public boolean violate(VolumeLine limit) {
        Set<String> were = violating;
        violating = volumes.entrySet().stream()
                .filter(each -> each.getValue().usesReserve
                        || limit != null
                                && limit.isReached(each.getValue(), were.contains(each.getKey())))
                .map(Map.Entry::getKey)
                .collect(Collectors.toCollection(TreeSet::new));
        return !violating.isEmpty();
    }

    /**
     * Whether a volume that {@link #violate} found is at or below the stop line, or was and is not yet
     * above it by the margin, or uses its reserve. A volume above the limit does not count, wherever
     * the stop line is.
     *
     * @param line null for none.
     */
    public boolean stop(VolumeLine line) {
        VolumeLine wide = line == null ? null : line.withMarginOf(STOP_MARGIN);
        boolean was = stopped;
        stopped = wide != null
                && violating.stream().anyMatch(logDir -> wide.isReached(volumes.get(logDir), was));
        return stopped || violating.stream().anyMatch(logDir -> volumes.get(logDir).usesReserve);
    }

    /** The requests that write to the volumes that {@link #violate} found; there must be one. */
    public Scope scope() {
        Scope scope = Scope.of(Set.of());
        for (String logDir : violating) {
            scope = scope.and(volumes.get(logDir).scope);
        }
        return scope;
    }

    /** The volumes that {@link #violate} found, for the log. */
    public String reason() {
        return violating.stream()
                .map(logDir -> {
                    Volume volume = volumes.get(logDir);
                    return String.format(
                            Locale.ROOT, "%s of this broker has %d bytes available of %d%s", logDir,
                            volume.availableBytes, volume.totalBytes,
                            volume.usesReserve ? ", since it started from its reserve" : "");
                })
                .collect(Collectors.joining(", "));
    }
}
