package throttlesidecar.volumes;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import throttlesidecar.observability.Journal;
import throttlesidecar.support.Repeated;
import throttlesidecar.support.Sanitized;

/**
 * The reserves of a broker's log dirs, see {@link Reserve}. {@link #release} is for a broker's start.
 * Later a thread makes and deletes the files; a disk that hangs there delays only other reserves.
 */
public final class Reserves implements AutoCloseable {
    private static final long EVERY_MS = 250;

    /** The ticks from a failure to the next attempt, a minute. */
    private static final int TICKS_AFTER_FAILURE = 240;

    private final List<String> logDirs;
    private final OwnVolumePoller.Disk disk;
    private final Supplier<Long> wanted;
    private final Supplier<VolumeLine> limit;
    private final Journal journal;
    private final Repeated thread;

    /** Log dir to the ticks until the next attempt, after a failure. */
    private final Map<String, Integer> waits = new HashMap<>();

    /** The log dirs whose last attempt failed. */
    private final Set<String> failing = ConcurrentHashMap.newKeySet();

    private volatile String report = "";

    /**
     * Reserves that are made and deleted from {@link #start} on.
     *
     * @param wanted the configured bytes of each; 0: none; null: not configured.
     * @param limit the volumes'; null for none.
     * @param failed receives bugs.
     */
    public Reserves(
            List<String> logDirs, OwnVolumePoller.Disk disk, Supplier<Long> wanted,
            Supplier<VolumeLine> limit, Journal journal, Consumer<Throwable> failed) {
        this.logDirs = List.copyOf(logDirs);
        this.disk = disk;
        this.wanted = wanted;
        this.limit = limit;
        this.journal = journal;
        thread = new Repeated("throttle-sidecar-reserve", this::tick, () -> EVERY_MS, failed);
    }

    /**
     * Releases the reserves that a starting broker needs, before Kafka opens a file there.
     *
     * @param limit the last one that is known; null for none.
     */
    public static void release(
            List<String> logDirs, OwnVolumePoller.Disk disk, VolumeLine limit, Journal journal) {
        for (String logDir : logDirs) {
            Reserve reserve = new Reserve(logDir);
            try {
                reserve.giveUp();
                long bytes = reserve.bytes();
                Volume volume = disk.look(logDir);
                if (volume != null && Reserve.isNeeded(bytes, volume, limit)) {
                    reserve.release();
                    journal.warn(String.format(
                            Locale.ROOT,
                            "The volume of %s has only %d bytes available, so the broker starts from its reserve"
                                    + " of %d bytes. Producers are stopped until there is space: make room now",
                            logDir, volume.availableBytes, bytes));
                }
            } catch (IOException | RuntimeException error) {
                journal.warn("The reserve in " + logDir + " can't be released (" + error
                        + "): delete the file " + Reserve.NAME + " there if the broker does not start");
            }
        }
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

    /** The bytes by log dir, such as {@code %2Fdata:1073741824}; 0 bytes after a release; "" without any. */
    public String report() {
        return report;
    }

    /** The log dirs whose reserve could not be made, or not deleted, at the last attempt. */
    public int failing() {
        return failing.size();
    }

    void tick() {
        Map<String, Long> found = new TreeMap<>();
        for (String logDir : logDirs) {
            Reserve reserve = new Reserve(logDir);
            if (waits.merge(logDir, -1, Integer::sum) < 0) {
                attempt(logDir, reserve);
            }
            long bytes = reserve.bytes();
            if (bytes >= 0) {
                found.put(logDir, bytes);
            }
        }
        StringJoiner joined = new StringJoiner(",");
        found.forEach((logDir, bytes) -> joined.add(Sanitized.of(logDir) + ":" + bytes));
        report = joined.toString();
    }

    private void attempt(String logDir, Reserve reserve) {
        waits.remove(logDir);
        try {
            advance(logDir, reserve);
            failing.remove(logDir);
        } catch (ClosedByInterruptException closed) {
            // The broker ends; the next start deletes what is unfinished.
        } catch (IOException | RuntimeException error) {
            waits.put(logDir, TICKS_AFTER_FAILURE);
            if (failing.add(logDir)) {
                journal.warn("The reserve in " + logDir + " can't be made or deleted (" + error
                        + "), which is tried again each minute: check the folder's permissions");
            }
        }
    }

    private void advance(String logDir, Reserve reserve) throws IOException {
        Volume volume = disk.look(logDir);
        if (volume == null || disk.isOffline(logDir, true)) {
            return;
        }
        Long bytes = wanted.get();
        switch (Reserve.next(
                reserve.bytes(), reserve.unfinishedBytes(), bytes, volume, limit.get())) {
            case GROW:
                if (reserve.grow(bytes)) {
                    journal.info("The reserve in " + logDir + " has its " + bytes + " bytes");
                }
                break;
            case GIVE_UP:
                reserve.giveUp();
                break;
            case DELETE:
                reserve.delete();
                break;
            default:
        }
    }
}
