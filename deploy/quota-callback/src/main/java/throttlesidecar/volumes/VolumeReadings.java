package throttlesidecar.volumes;

import java.util.Map;
import throttlesidecar.decision.Scope;

/** What the broker's own volumes had when they were last looked at, by log dir. */
public final class VolumeReadings {
    /** As long as nobody has looked. */
    static final VolumeReadings NONE = new VolumeReadings(Map.of());

    private final Map<String, Volume> volumes;

    public VolumeReadings(Map<String, Volume> volumes) {
        this.volumes = Map.copyOf(volumes);
    }

    /** By log dir; one that could not be looked at has its last reading. */
    public Map<String, Volume> volumes() {
        return volumes;
    }

    /** The bytes of a volume. */
    public static final class Volume {
        private final long availableBytes;
        private final long totalBytes;
        private final Scope scope;

        public Volume(long availableBytes, long totalBytes) {
            this(availableBytes, totalBytes, Scope.ALL);
        }

        /**
         * A volume.
         *
         * @param scope who writes to it; all, where what lies there is not known.
         */
        public Volume(long availableBytes, long totalBytes, Scope scope) {
            this.availableBytes = availableBytes;
            this.totalBytes = totalBytes;
            this.scope = scope;
        }

        public Scope scope() {
            return scope;
        }

        public long availableBytes() {
            return availableBytes;
        }

        public long totalBytes() {
            return totalBytes;
        }
    }
}
