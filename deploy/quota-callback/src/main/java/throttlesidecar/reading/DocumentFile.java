package throttlesidecar.reading;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import throttlesidecar.observability.Journal;
import throttlesidecar.support.Clocks;
import throttlesidecar.volumes.VolumeLine;

/**
 * Keeps the sidecar's last document on disk. A broker that starts during a throttle then throttles from
 * the first request on. A broker without its sidecar still knows the limits of its own volumes.
 *
 * <p>The file contains the document as it was received. It is valid until its modification time plus
 * the document's validity, so a restart prolongs no validity.
 */
public final class DocumentFile {
    public static final String NAME = "throttle-sidecar-quota-factors.json";

    /** The shortest time between two renewals of the modification time. */
    private static final long RENEW_MS = 30_000;

    private final Path file;
    private final Clocks clocks;
    private final Journal journal;
    private byte[] written;
    private long triedMs;
    private boolean failed;

    /**
     * @param folder exists, and need not be writable.
     */
    public DocumentFile(Path folder, Clocks clocks, Journal journal) {
        this.file = folder.resolve(NAME);
        this.clocks = clocks;
        this.journal = journal;
    }

    public static final class Found {
        final Document document;
        final long ageMs;

        Found(Document document, long ageMs) {
            this.document = document;
            this.ageMs = ageMs;
        }
    }

    /** The document on disk; null if there is none or it can't be read. */
    public Found read() {
        try {
            if (!Files.exists(file)) {
                return null;
            }
            if (Files.size(file) > HttpAnswer.MOST_BODY) {
                throw new IOException("it is too large");
            }
            byte[] body = Files.readAllBytes(file);
            long ageMs = clocks.nowMs() - Files.getLastModifiedTime(file).toMillis();
            Found found = new Found(DocumentReader.read(body), Math.max(0, ageMs));
            written = body;
            return found;
        } catch (IOException | WrongAnswer | RuntimeException | LinkageError error) {
            journal.warn("The sidecar's document in " + file + " can't be used: " + error.getMessage());
            return null;
        }
    }

    /** The limit of the volumes in the document on disk; null for none, or without a document. */
    public VolumeLine readLimit() {
        Found found = read();
        return found == null ? null : found.document.limit;
    }

    /** Keeps a document that was just received or renewed; one thread at a time calls it. */
    public void write(Found found) {
        long nowMs = clocks.nowMs();
        byte[] body = found.document.body;
        boolean same = Arrays.equals(body, written);
        boolean soon = Math.abs(nowMs - triedMs) < RENEW_MS;
        // A write that failed, usually because the disk is full, is not repeated at every answer.
        if (soon && (same || failed)) {
            return;
        }
        triedMs = nowMs;
        try {
            FileTime begin = FileTime.fromMillis(nowMs - found.ageMs);
            if (same) {
                Files.setLastModifiedTime(file, begin);
            } else {
                // Not forced to the disk, which may be slow now: a truncated file is ignored.
                Path next = file.resolveSibling(NAME + ".new");
                Files.write(next, body);
                Files.setLastModifiedTime(next, begin);
                Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
            }
            written = body;
            failed = false;
        } catch (IOException error) {
            if (!failed) {
                journal.warn("The sidecar's document can't be kept in " + file + ": " + error);
            }
            failed = true;
        }
    }
}
