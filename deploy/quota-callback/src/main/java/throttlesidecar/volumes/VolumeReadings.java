package throttlesidecar.volumes;

import java.util.Map;
import throttlesidecar.decision.Scope;

/** The broker's own volumes as they were last read, by log dir. */
public final class VolumeReadings {
    /** Before the first reading. */
    static final VolumeReadings NONE = new VolumeReadings(Map.of());

    /** The volumes by log dir; for a log dir that could not be read, its last reading. */
    public final Map<String, Volume> volumes;

    public VolumeReadings(Map<String, Volume> volumes) {
        this.volumes = Map.copyOf(volumes);
    }

    /** The bytes of a volume. */
    public static final class Volume {
        public final long availableBytes;
        public final long totalBytes;

        /** The requests that write to the volume; all if its topics are not known. */
        public final Scope scope;

        public Volume(long availableBytes, long totalBytes) {
            this(availableBytes, totalBytes, Scope.ALL);
        }

        public Volume(long availableBytes, long totalBytes, Scope scope) {
            this.availableBytes = availableBytes;
            this.totalBytes = totalBytes;
            this.scope = scope;
        }
    }
}
