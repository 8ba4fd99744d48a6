package throttlesidecar.reading;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import throttlesidecar.observability.Journal;
import throttlesidecar.support.Clocks;

/**
 * The sidecar's last document on disk: a broker that starts in a throttle is throttled from its first
 * request on, and one whose sidecar is gone knows the limits of its own volumes.
 *
 * <p>The file is the document as it was sent, and its time of modification when it was last renewed.
 */
public final class DocumentFile {
    public static final String NAME = "throttle-sidecar-quota-factors.json";

    /** So often the time is renewed at most. */
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

    /** A document and its age. */
    public static final class Found {
        final Document document;
        final long ageMs;

        Found(Document document, long ageMs) {
            this.document = document;
            this.ageMs = ageMs;
        }
    }

    /** What is kept; null: nothing, or what can't be read. */
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
        } catch (IOException | WrongAnswer error) {
            journal.warn("The document kept in " + file + " can't be used: " + error.getMessage());
            return null;
        }
    }

    /** Keeps a document that was just received or renewed; one thread at a time. */
    public void write(Document document) {
        long nowMs = clocks.nowMs();
        boolean same = Arrays.equals(document.body, written);
        boolean soon = Math.abs(nowMs - triedMs) < RENEW_MS;
        // A disk that is full, which is the usual reason, is not tried at every answer.
        if (soon && (same || failed)) {
            return;
        }
        triedMs = nowMs;
        try {
            if (same) {
                Files.setLastModifiedTime(file, FileTime.fromMillis(nowMs));
            } else {
                // Not forced to the disk, which may be slow now: a file that was cut is none.
                Path next = file.resolveSibling(NAME + ".new");
                Files.write(next, document.body);
                Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
            }
            written = document.body;
            failed = false;
        } catch (IOException error) {
            if (!failed) {
                journal.warn("The sidecar's document can't be kept in " + file + ": " + error);
            }
            failed = true;
        }
    }
}
