package throttlesidecar.volumes;

import throttlesidecar.decision.Scope;

/** The bytes of one of the broker's own volumes, as they were last read. */
public final class Volume {
    public final long availableBytes;
    public final long totalBytes;

    /** The requests that write to the volume; all if its topics are not known. */
    public final Scope scope;

    /** Whether the broker started from its reserve here: the volume then counts as at the stop line. */
    public final boolean usesReserve;

    public Volume(long availableBytes, long totalBytes) {
        this(availableBytes, totalBytes, Scope.ALL);
    }

    public Volume(long availableBytes, long totalBytes, Scope scope) {
        this(availableBytes, totalBytes, scope, false);
    }

    public Volume(long availableBytes, long totalBytes, Scope scope, boolean usesReserve) {
        this.usesReserve = usesReserve;
        this.availableBytes = availableBytes;
        this.totalBytes = totalBytes;
        this.scope = scope;
    }
}
