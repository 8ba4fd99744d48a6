package throttlesidecar.volumes;

import throttlesidecar.decision.Scope;

/** The bytes of one of the broker's own volumes, as they were last read. */
public final class Volume {
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
