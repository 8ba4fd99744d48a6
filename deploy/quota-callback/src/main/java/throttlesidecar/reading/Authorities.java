package throttlesidecar.reading;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.Callable;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import org.apache.kafka.common.config.ConfigException;
import throttlesidecar.observability.Journal;
import throttlesidecar.settings.Settings;

/**
 * The certificate authorities that are trusted for a sidecar reached by https: those of a file, which is
 * read again for each request. While its new content can't be used, the last one that could stays in use.
 */
public final class Authorities implements Callable<SSLSocketFactory> {
    public final Path file;
    private final Journal journal;
    private byte[] pem;
    private SSLSocketFactory factory;
    private boolean isFailing;

    /**
     * Reads the file.
     *
     * @throws ConfigException as {@link #of}.
     */
    public Authorities(Path file, Journal journal) {
        this.file = file;
        this.journal = journal;
        pem = read(file);
        factory = of(file, pem).getSocketFactory();
    }

    /** Makes sockets that trust the authorities in the file. */
    @Override
    public synchronized SSLSocketFactory call() {
        try {
            byte[] now = read(file);
            if (!Arrays.equals(now, pem)) {
                factory = of(file, now).getSocketFactory();
                pem = now;
                journal.info("The authorities in " + file + " have changed, and were read again");
            }
            isFailing = false;
        } catch (ConfigException error) {
            if (!isFailing) {
                journal.warn("The authorities that were read before stay in use: " + error.getMessage());
            }
            isFailing = true;
        }
        return factory;
    }

    /**
     * A context that trusts only the authorities of a file.
     *
     * @param file PEM certificates.
     * @throws ConfigException the file can't be read or contains no certificate.
     */
    public static SSLContext of(Path file) {
        return of(file, read(file));
    }

    private static byte[] read(Path file) {
        try {
            return Files.readAllBytes(file);
        } catch (IOException error) {
            throw refused(file, "can't be read (" + error + ")");
        }
    }

    private static SSLContext of(Path file, byte[] pem) {
        try {
            Collection<? extends Certificate> certificates =
                    CertificateFactory.getInstance("X.509")
                            .generateCertificates(new ByteArrayInputStream(pem));
            if (certificates.isEmpty()) {
                throw refused(file, "contains no certificate");
            }
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            for (Certificate certificate : certificates) {
                store.setCertificateEntry("authority-" + store.size(), certificate);
            }
            TrustManagerFactory trust =
                    TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            return context;
        } catch (IOException | GeneralSecurityException error) {
            throw refused(file, "can't be read (" + error + ")");
        }
    }

    private static ConfigException refused(Path file, String problem) {
        return new ConfigException(
                Settings.CA_FILE + ": " + file + " " + problem
                        + "; name a file of PEM certificates that the broker's user may read");
    }
}
