package throttlesidecar.reading;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Collection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.apache.kafka.common.config.ConfigException;
import throttlesidecar.settings.Settings;

/** The certificate authorities that are trusted for a sidecar reached by https. */
public final class Authorities {
    private Authorities() {}

    /**
     * A context that trusts only the authorities of a file.
     *
     * @param file PEM certificates.
     * @throws ConfigException the file can't be read or contains no certificate.
     */
    public static SSLContext of(Path file) {
        try (InputStream pem = Files.newInputStream(file)) {
            Collection<? extends Certificate> certificates =
                    CertificateFactory.getInstance("X.509").generateCertificates(pem);
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
