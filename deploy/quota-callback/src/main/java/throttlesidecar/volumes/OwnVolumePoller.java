package throttlesidecar.volumes;

import java.io.File;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import throttlesidecar.decision.Scope;

/**
 * Reads the volumes of this broker's log dirs four times a second, so that the broker throttles also
 * while its sidecar is dead. It has its own thread, since a reading of a hanging disk does not return.
 */
public final class OwnVolumePoller implements AutoCloseable {
    static final long EVERY_MS = 250;

    /** The topics on them are listed at each fourth reading, where that matters. */
    private static final int LOOKS = 4;

    /** As Kafka names partitions' folders; those that are deleted don't count. */
    private static final Pattern FOLDER = Pattern.compile("(.+)-[0-9]+(\\.[0-9a-f]+-future)?");

    /** The file systems, which a test replaces. */
    public interface Disk {
        /** Null when the volume can't be read, as of a broken disk. */
        public VolumeReadings.Volume look(String logDir);

        /** The machine's. */
        Disk SYSTEM = logDir -> {
            File folder = new File(logDir);
            long total = folder.getTotalSpace();
            // Both are 0 after an error.
            return total > 0 ? new VolumeReadings.Volume(folder.getUsableSpace(), total) : null;
        };

        /** The names of the folders in a log dir; null when it can't be read. */
        default String[] list(String logDir) {
            return new File(logDir).list();
        }
    }

    private final List<String> logDirs;
    private final Disk disk;
    private final BooleanSupplier lists;
    private final Consumer<VolumeReadings> seen;
    private final Thread thread = new Thread(this::run, "throttle-sidecar-volumes");
    private final Map<String, VolumeReadings.Volume> last = new TreeMap<>();
    private final Map<String, Scope> scopes = new HashMap<>();
    private int looks;
    private volatile boolean closed;

    /**
     * Reads from {@link #start} on.
     *
     * @param lists whether it matters which topics lie on the volumes.
     * @param seen gets the readings, on the poller's thread.
     */
    public OwnVolumePoller(
            List<String> logDirs,
            Disk disk,
            BooleanSupplier lists,
            Consumer<VolumeReadings> seen) {
        this.lists = lists;
        this.logDirs = List.copyOf(logDirs);
        this.disk = disk;
        this.seen = seen;
        thread.setDaemon(true);
    }

    public void start() {
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

    /** One reading of all log dirs. */
    public void look() {
        if (looks++ % LOOKS == 0) {
            scopes.clear();
        }
        for (String logDir : logDirs) {
            VolumeReadings.Volume volume = disk.look(logDir);
            if (volume != null) {
                Scope scope =
                        lists.getAsBoolean()
                                ? scopes.computeIfAbsent(logDir, this::list)
                                : Scope.ALL;
                last.put(
                        logDir,
                        new VolumeReadings.Volume(
                                volume.availableBytes, volume.totalBytes, scope));
            }
        }
        seen.accept(new VolumeReadings(last));
    }

    /** The requests that write to a partition in a log dir. */
    private Scope list(String logDir) {
        String[] names = disk.list(logDir);
        if (names == null) {
            return Scope.ALL;
        }
        Set<String> topics = new HashSet<>();
        for (String name : names) {
            Matcher found = FOLDER.matcher(name);
            if (found.matches()) {
                topics.add(found.group(1));
            }
        }
        return Scope.of(topics);
    }
}
