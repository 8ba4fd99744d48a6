package throttlesidecar.volumes;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Random;

/**
 * The reserve file of one log dir: bytes that a broker gets back when it starts on a full volume.
 *
 * <p>Kafka reads only the folders in a log dir, so it ignores the file. Its length is its state: a file
 * with bytes is a reserve; an empty one was released, and no produce request is admitted until there
 * is space. So a second restart finds the same state, without a record anywhere else.
 *
 * <p>A reserve is released only at a broker's start, if the volume has fewer bytes available than the
 * reserve and is at or below the limit. It is made again when, with it, the volume would be above the
 * limit. Example: the limit is 10 GiB available and the reserve 1 GiB. A broker that starts with
 * 100 MiB available gets 1.1 GiB. Its new reserve is made from 11 GiB available on.
 */
final class Reserve {
    static final String NAME = "throttle-sidecar-reserve";

    /** What one {@link #grow} writes, so that no disk gets more than this four times a second. */
    static final int CHUNK_BYTES = 8 << 20;

    /** What to do with the files now. */
    enum Step {
        REST,
        /** Write another chunk of a new reserve. */
        GROW,
        /** Delete an unfinished reserve. */
        GIVE_UP,
        /** Delete the reserve, or the mark that it was released. */
        DELETE
    }

    private final Path file;
    private final Path unfinished;

    Reserve(String logDir) {
        file = Path.of(logDir, NAME);
        unfinished = Path.of(logDir, NAME + ".new");
    }

    /** The file's bytes: 0 after a release; -1 without a file. */
    long bytes() {
        return size(file);
    }

    long unfinishedBytes() {
        return size(unfinished);
    }

    private static long size(Path path) {
        // A missing file has the length 0 too.
        return Files.exists(path) ? path.toFile().length() : -1;
    }

    /**
     * Whether a broker that starts gets the reserve.
     *
     * @param bytes of the reserve.
     * @param limit the last one that is known; null for none.
     */
    static boolean isNeeded(long bytes, Volume volume, VolumeLine limit) {
        return bytes > volume.availableBytes && (limit == null || limit.isReached(volume, false));
    }

    /**
     * What to do while the broker runs.
     *
     * @param bytes as {@link #bytes}.
     * @param unfinishedBytes of the reserve that is being made; -1 for none.
     * @param wanted the configured bytes; null: not configured, so a reserve of an earlier run stays.
     * @param limit the volume's; null for none, and then as much as the reserve must remain available.
     */
    static Step next(
            long bytes, long unfinishedBytes, Long wanted, Volume volume, VolumeLine limit) {
        boolean isMaking = unfinishedBytes >= 0;
        if (wanted == null) {
            // A reserve that was released is far below a tenth of its volume, and no space by itself.
            boolean isOver = bytes == 0
                    && (limit == null
                            ? volume.availableBytes > volume.totalBytes / 10
                            : !limit.isReached(volume, true));
            return isOver ? Step.DELETE : isMaking ? Step.GIVE_UP : Step.REST;
        }
        if (wanted == 0) {
            return bytes >= 0 || isMaking ? Step.DELETE : Step.REST;
        }
        if (bytes == wanted || unfinishedBytes > wanted) {
            return isMaking ? Step.GIVE_UP : Step.REST;
        }
        long left = volume.availableBytes + Math.max(0, bytes) + Math.max(0, unfinishedBytes) - wanted;
        Volume with = new Volume(left, volume.totalBytes);
        // Once begun, it is given up only at the limit itself, not within its margin.
        boolean hasRoom = limit == null ? left >= wanted : !limit.isReached(with, !isMaking);
        if (!hasRoom) {
            return isMaking ? Step.GIVE_UP : Step.REST;
        }
        return bytes > 0 ? Step.DELETE : Step.GROW;
    }

    /** Whether the broker started from its reserve in this log dir and has no new one. */
    static boolean isReleased(String logDir) {
        return new Reserve(logDir).bytes() == 0;
    }

    /** Gives the bytes back. Truncating a file needs no space, also where a new file would not fit. */
    void release() throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(0);
            channel.force(true);
        }
    }

    /**
     * Writes the next chunk, and completes the reserve with the last one. The bytes are random, because
     * some file systems store zeros, or what they can compress, in no blocks.
     *
     * @return whether the reserve is complete.
     */
    boolean grow(long wanted) throws IOException {
        // From here on there is space: producers are admitted while the new reserve is written.
        Files.deleteIfExists(file);
        try (FileChannel channel = FileChannel.open(
                unfinished, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            long before = channel.size();
            byte[] chunk = new byte[(int) Math.min(CHUNK_BYTES, wanted - before)];
            new Random().nextBytes(chunk);
            ByteBuffer rest = ByteBuffer.wrap(chunk);
            while (rest.hasRemaining()) {
                channel.write(rest, before + rest.position());
            }
            channel.force(true);
            if (before + chunk.length < wanted) {
                return false;
            }
        } catch (IOException error) {
            giveUp();
            throw error;
        }
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
        return true;
    }

    void giveUp() throws IOException {
        Files.deleteIfExists(unfinished);
    }

    void delete() throws IOException {
        giveUp();
        Files.deleteIfExists(file);
    }
}
