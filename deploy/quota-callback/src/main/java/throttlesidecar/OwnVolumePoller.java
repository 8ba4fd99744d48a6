package throttlesidecar;

import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * Looks at the volumes of this broker's log dirs four times a second, so that a dead sidecar does not
 * blind its broker. On a thread of its own: a look at a disk that hangs does not return.
 */
final class OwnVolumePoller implements AutoCloseable {
    static final long EVERY_MS = 250;

    /** What a file system says. */
    interface Disk {
        /** Null when it says nothing, as of a disk that is broken. */
        VolumeReadings.Volume look(String logDir);

        /** The machine's. */
        Disk SYSTEM = logDir -> {
            File folder = new File(logDir);
            long total = folder.getTotalSpace();
            // Both are 0 after an error.
            return total > 0 ? new VolumeReadings.Volume(folder.getUsableSpace(), total) : null;
        };
    }

    private final List<String> logDirs;
    private final Disk disk;
    private final Consumer<VolumeReadings> seen;
    private final Thread thread = new Thread(this::run, "throttle-sidecar-volumes");
    private final Map<String, VolumeReadings.Volume> last = new TreeMap<>();
    private volatile boolean closed;

    /**
     * Looks from {@link #start} on.
     *
     * @param seen gets what was seen, on the thread that looks.
     */
    OwnVolumePoller(List<String> logDirs, Disk disk, Consumer<VolumeReadings> seen) {
        this.logDirs = List.copyOf(logDirs);
        this.disk = disk;
        this.seen = seen;
        thread.setDaemon(true);
    }

    void start() {
        if (!logDirs.isEmpty()) {
            thread.start();
        }
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
    }

    private void run() {
        while (!closed) {
            look();
            try {
                Thread.sleep(EVERY_MS);
            } catch (InterruptedException ended) {
                // By close() alone.
            }
        }
    }

    /** One look at all log dirs. */
    void look() {
        for (String logDir : logDirs) {
            VolumeReadings.Volume volume = disk.look(logDir);
            if (volume != null) {
                last.put(logDir, volume);
            }
        }
        seen.accept(new VolumeReadings(last));
    }
}
