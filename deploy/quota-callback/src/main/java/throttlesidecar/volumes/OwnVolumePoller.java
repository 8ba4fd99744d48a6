package throttlesidecar.volumes;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import throttlesidecar.decision.Scope;
import throttlesidecar.support.Repeated;

/**
 * Reads the volumes of this broker's log dirs four times a second, so that the broker throttles even
 * while its sidecar is dead. It has its own thread, since a read of a hanging disk does not return.
 *
 * <p>A full log dir that Kafka has taken offline stays full, and its file system can often still be read.
 * It has no reading here: the sidecars count it until an operator tells them to forget it.
 */
public final class OwnVolumePoller implements AutoCloseable {
    static final long EVERY_MS = 250;

    /** The topics on the volumes are listed at every fourth reading, if they matter. */
    private static final int LOOKS = 4;

    /** Kafka's gauge for each log dir; 1 when it is offline. */
    private static final String GAUGE = "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=";

    /** The names of Kafka's partition folders, without those of deleted partitions. */
    private static final Pattern FOLDER = Pattern.compile("(.+)-[0-9]+(\\.[0-9a-f]+-future)?");

    /** The file systems, which a test replaces. */
    public interface Disk {
        /** The volume of a log dir; null if it can't be read, as after a disk failure. */
        Volume look(String logDir);

        /** Whether Kafka has taken a log dir offline; it then writes no more to it. */
        default boolean isOffline(String logDir) {
            return false;
        }

        /** The names of the folders in a log dir; null if it can't be read. */
        default String[] list(String logDir) {
            return new File(logDir).list();
        }

        /** The machine's. */
        Disk SYSTEM = new Disk() {
            @Override
            public Volume look(String logDir) {
                File folder = new File(logDir);
                long total = folder.getTotalSpace();
                // Both numbers are 0 after an error.
                return total > 0 ? new Volume(folder.getUsableSpace(), total) : null;
            }

            @Override
            public boolean isOffline(String logDir) {
                String path = ObjectName.quote(new File(logDir).getAbsolutePath());
                try {
                    ObjectName gauge = new ObjectName(GAUGE + path);
                    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
                    return server.isRegistered(gauge)
                            ? server.getAttribute(gauge, "Value").equals(1)
                            : look(logDir) == null;
                } catch (JMException gone) {
                    return false;
                }
            }
        };
    }

    private final List<String> logDirs;
    private final Disk disk;
    private final Predicate<Volume> matters;
    private final Consumer<Map<String, Volume>> seen;
    private final Repeated thread;
    private final Map<String, Volume> last = new TreeMap<>();
    private final Map<String, Scope> scopes = new HashMap<>();
    private int looks;

    /**
     * A poller that begins with {@link #start}.
     *
     * @param matters whether the topics on a volume matter; listing them reads a folder of all partitions.
     * @param seen receives the volumes by log dir, on the poller's thread, without those that are
     *     offline; for a log dir that could not be read, its last reading.
     * @param failed receives errors.
     */
    public OwnVolumePoller(
            List<String> logDirs, Disk disk, Predicate<Volume> matters,
            Consumer<Map<String, Volume>> seen, Consumer<Throwable> failed) {
        this.matters = matters;
        this.logDirs = List.copyOf(logDirs);
        this.disk = disk;
        this.seen = seen;
        this.thread = new Repeated("throttle-sidecar-volumes", this::look, () -> EVERY_MS, failed);
    }

    public void start() {
        if (!logDirs.isEmpty()) {
            thread.start();
        }
    }

    @Override
    public void close() {
        thread.close();
    }

    public void look() {
        if (looks++ % LOOKS == 0) {
            scopes.clear();
        }
        for (String logDir : logDirs) {
            Volume volume = disk.look(logDir);
            if (disk.isOffline(logDir)) {
                last.remove(logDir);
            } else if (volume != null) {
                Scope scope = matters.test(volume) ? scopes.computeIfAbsent(logDir, this::list) : Scope.ALL;
                last.put(logDir, new Volume(volume.availableBytes, volume.totalBytes, scope));
            }
        }
        seen.accept(Map.copyOf(last));
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
