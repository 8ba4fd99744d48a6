package throttlesidecar;

import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.LoggerFactory;
import throttlesidecar.observability.Journal;
import throttlesidecar.reading.DocumentFile;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.volumes.OwnVolumePoller;
import throttlesidecar.volumes.Reserves;

/** Releases the reserves that a broker needs, once at its start, before Kafka opens files there. */
final class ReserveRelease {
    private static final AtomicBoolean DONE = new AtomicBoolean();

    private ReserveRelease() {}

    /** Does it if this is the first call in this JVM; never fails. */
    static void atStart(Map<String, ?> configs) {
        if (DONE.getAndSet(true)) {
            return;
        }
        Journal journal = Journal.of(LoggerFactory.getLogger(SidecarQuotaCallback.class));
        try {
            Settings settings = Settings.of(configs);
            if (settings.enabled && settings.folder() != null) {
                DocumentFile kept = new DocumentFile(settings.folder(), Clocks.SYSTEM, journal);
                Reserves.release(
                        settings.logDirs, OwnVolumePoller.Disk.SYSTEM, kept.readLimit(), journal);
            }
        } catch (RuntimeException | LinkageError error) {
            // The callback refuses wrong settings later, with the reason.
            journal.warn("No reserve was released: " + error.getMessage());
        }
    }
}
