package throttlesidecar.volumes;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
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
 * while its sidecar is dead. Each log dir is read on a thread of its own, since a read of a hanging disk
 * does not return: that log dir keeps its last reading, and the others are read on.
 *
 * <p>A full log dir that Kafka has taken offline stays full, and its file system can often still be read.
 * It has no reading here: the sidecars count it until an operator tells them to forget it.
 */
public final class OwnVolumePoller implements AutoCloseable {
    static final long EVERY_MS = 250;

    /** The topics on the volumes are listed at every fourth reading, if they matter. */
    private static final int LOOKS = 4;

    /** How long a look waits for the reads that it began, in all. */
    private static final long WAIT_MS = 500;

    /** A read hangs if more looks than this number end before it, after about 5 s. */
    private static final int HANGS_AFTER = 20;

    /** Kafka's gauge for each log dir; 1 when it is offline. */
    private static final String GAUGE = "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=";

    /** The names of Kafka's partition folders, without those of deleted partitions. */
    private static final Pattern FOLDER = Pattern.compile("(.+)-[0-9]+(\\.[0-9a-f]+-future)?");

    /** The file systems, which a test replaces. */
    public interface Disk {
        /** The volume of a log dir; null if it can't be read, as after a disk failure. */
        Volume look(String logDir);

        /**
         * Whether Kafka has taken a log dir offline; it then writes no more to it. It reads no disk.
         *
         * @param isReadable decides while Kafka has no gauge for the log dir.
         */
        default boolean isOffline(String logDir, boolean isReadable) {
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
            public boolean isOffline(String logDir, boolean isReadable) {
                String path = ObjectName.quote(new File(logDir).getAbsolutePath());
                try {
                    ObjectName gauge = new ObjectName(GAUGE + path);
                    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
                    return server.isRegistered(gauge)
                            ? server.getAttribute(gauge, "Value").equals(1)
                            : !isReadable;
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
    private final Map<String, Scope> scopes = new ConcurrentHashMap<>();
    private final Consumer<Throwable> failed;
    private final Consumer<Set<String>> hanging;

    /** The reads that have not returned, and how many looks each has outlasted. */
    private final Map<String, CompletableFuture<Volume>> reads = new HashMap<>();
    private final Map<String, Integer> outlasted = new HashMap<>();

    private final ExecutorService readers = Executors.newCachedThreadPool(task -> {
        Thread reader = new Thread(task, "throttle-sidecar-volume");
        reader.setDaemon(true);
        return reader;
    });
    private int looks;

    /**
     * A poller that begins with {@link #start}.
     *
     * @param matters whether the topics on a volume matter; listing them reads a folder of all partitions.
     *     On any thread.
     * @param seen receives the volumes by log dir, on the poller's thread, without those that are
     *     offline; for a log dir that could not be read, its last reading.
     * @param hanging receives the log dirs whose reads hang, at each look.
     * @param failed receives errors.
     */
    public OwnVolumePoller(
            List<String> logDirs, Disk disk, Predicate<Volume> matters,
            Consumer<Map<String, Volume>> seen, Consumer<Set<String>> hanging,
            Consumer<Throwable> failed) {
        this.matters = matters;
        this.logDirs = List.copyOf(logDirs);
        this.disk = disk;
        this.seen = seen;
        this.hanging = hanging;
        this.failed = failed;
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
        readers.shutdown();
    }

    public void look() {
        if (looks++ % LOOKS == 0) {
            scopes.clear();
        }
        for (String logDir : logDirs) {
            reads.computeIfAbsent(logDir, dir -> CompletableFuture.supplyAsync(() -> read(dir), readers));
        }
        long endNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
        Set<String> hang = new TreeSet<>();
        for (String logDir : logDirs) {
            boolean isReadable = true;
            try {
                // A read that outlasted a look delays no other.
                long waitNanos = outlasted.containsKey(logDir) ? 0 : Math.max(0, endNanos - System.nanoTime());
                Volume volume = reads.get(logDir).get(waitNanos, TimeUnit.NANOSECONDS);
                isReadable = volume != null;
                if (isReadable) {
                    last.put(logDir, volume);
                }
                returned(logDir);
            } catch (TimeoutException late) {
                if (outlasted.merge(logDir, 1, Integer::sum) > HANGS_AFTER) {
                    hang.add(logDir);
                }
            } catch (ExecutionException error) {
                returned(logDir);
                failed.accept(error.getCause());
            } catch (InterruptedException closed) {
                return;
            }
            if (disk.isOffline(logDir, isReadable)) {
                last.remove(logDir);
                hang.remove(logDir);
            }
        }
        hanging.accept(hang);
        seen.accept(Map.copyOf(last));
    }

    private void returned(String logDir) {
        reads.remove(logDir);
        outlasted.remove(logDir);
    }

    /** The volume of a log dir, with its scope; null if it can't be read. */
    private Volume read(String logDir) {
        Volume look = disk.look(logDir);
        if (look == null) {
            return null;
        }
        boolean usesReserve = Reserve.isReleased(logDir);
        Volume volume = new Volume(look.availableBytes, look.totalBytes, Scope.ALL, usesReserve);
        if (!matters.test(volume)) {
            return volume;
        }
        Scope scope = scopes.get(logDir);
        if (scope == null) {
            scope = list(logDir);
            scopes.put(logDir, scope);
        }
        return new Volume(volume.availableBytes, volume.totalBytes, scope, usesReserve);
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
