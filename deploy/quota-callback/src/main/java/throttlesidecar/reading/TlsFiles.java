package throttlesidecar.reading;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.apache.kafka.common.config.ConfigException;
import throttlesidecar.observability.Journal;
import throttlesidecar.settings.Settings;

/**
 * The PEM files for a sidecar reached by https: the certificate authorities that are trusted, and for
 * mutual TLS this broker's certificate and key. They are read again for each request. While their new
 * content can't be used, the last one that could stays in use.
 *
 * <p>Example: the certificate is replaced at 0 s and its key at 1 s. Requests in between use the former
 * certificate and key.
 */
public final class TlsFiles implements Callable<SSLSocketFactory> {
    private static final Pattern KEY =
            Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----");
    private static final char[] NO_PASSWORD = {};

    private final Path[] files;
    private final Journal journal;
    private byte[][] pem;
    private SSLSocketFactory factory;
    private boolean isFailing;

    /**
     * Reads the files.
     *
     * @throws ConfigException as {@link #of}.
     */
    public TlsFiles(Settings settings, Journal journal) {
        this(journal, settings.caFile, settings.certificateFile, settings.keyFile);
    }

    /** The files of authorities, certificate and key; each may be null. */
    TlsFiles(Journal journal, Path... files) {
        this.files = files;
        this.journal = journal;
        pem = read(files);
        factory = of(files, pem).getSocketFactory();
    }

    /** Whether these are the files of the settings. */
    public boolean areOf(Settings settings) {
        Path[] theirs = {settings.caFile, settings.certificateFile, settings.keyFile};
        return Arrays.equals(files, theirs);
    }

    /** Makes sockets that trust the authorities, and present the certificate. */
    @Override
    public synchronized SSLSocketFactory call() {
        try {
            byte[][] now = read(files);
            if (!Arrays.deepEquals(now, pem)) {
                factory = of(files, now).getSocketFactory();
                pem = now;
                journal.info("The TLS files have changed, and were read again: " + Arrays.toString(files));
            }
            isFailing = false;
        } catch (ConfigException error) {
            if (!isFailing) {
                journal.warn("The TLS files that were read before stay in use: " + error.getMessage());
            }
            isFailing = true;
        }
        return factory;
    }

    /**
     * A context that uses the files of the settings; without authorities, the JVM's are trusted.
     *
     * @throws ConfigException a file can't be read or used.
     */
    public static SSLContext of(Settings settings) {
        Path[] files = {settings.caFile, settings.certificateFile, settings.keyFile};
        return of(files, read(files));
    }

    static SSLContext of(Path... files) {
        return of(files, read(files));
    }

    private static byte[][] read(Path[] files) {
        byte[][] pem = new byte[files.length][];
        for (int at = 0; at < files.length; at++) {
            try {
                pem[at] = files[at] == null ? null : Files.readAllBytes(files[at]);
            } catch (IOException error) {
                throw refused(at, files[at], "can't be read (" + error + ")");
            }
        }
        return pem;
    }

    private static SSLContext of(Path[] files, byte[][] pem) {
        int at = 0;
        try {
            TrustManager[] trust = pem[0] == null ? null : trusting(certificates(0, files[0], pem[0]));
            at = 1;
            KeyManager[] keys = null;
            if (files.length > 1 && pem[1] != null) {
                Certificate[] chain = certificates(1, files[1], pem[1]).toArray(new Certificate[0]);
                at = 2;
                keys = presenting(chain, key(files[2], pem[2], chain[0].getPublicKey()));
            }
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys, trust, null);
            return context;
        } catch (IOException | GeneralSecurityException | IllegalArgumentException error) {
            throw refused(at, files[at], "can't be used (" + error + ")");
        }
    }

    private static Collection<? extends Certificate> certificates(int at, Path file, byte[] pem)
            throws GeneralSecurityException {
        Collection<? extends Certificate> certificates =
                CertificateFactory.getInstance("X.509")
                        .generateCertificates(new ByteArrayInputStream(certificatesOnly(pem)));
        if (certificates.isEmpty()) {
            throw refused(at, file, "contains no certificate");
        }
        return certificates;
    }

    /** Without the key, which may be in the file of its certificate. */
    private static byte[] certificatesOnly(byte[] pem) {
        String text = new String(pem, StandardCharsets.ISO_8859_1);
        return KEY.matcher(text).replaceAll("").getBytes(StandardCharsets.ISO_8859_1);
    }

    private static TrustManager[] trusting(Collection<? extends Certificate> authorities)
            throws IOException, GeneralSecurityException {
        KeyStore store = emptyStore();
        for (Certificate authority : authorities) {
            store.setCertificateEntry("authority-" + store.size(), authority);
        }
        TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        return trust.getTrustManagers();
    }

    private static KeyManager[] presenting(Certificate[] chain, PrivateKey key)
            throws IOException, GeneralSecurityException {
        KeyStore store = emptyStore();
        store.setKeyEntry("broker", key, NO_PASSWORD, chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, NO_PASSWORD);
        return keys.getKeyManagers();
    }

    private static KeyStore emptyStore() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    private static PrivateKey key(Path file, byte[] pem, PublicKey publicKey)
            throws GeneralSecurityException {
        Matcher found = KEY.matcher(new String(pem, StandardCharsets.ISO_8859_1));
        if (!found.find()) {
            throw refused(
                    2, file,
                    "contains no PKCS #8 key without a password (-----BEGIN PRIVATE KEY-----; with"
                            + " cert-manager, privateKey.encoding is PKCS8)");
        }
        byte[] encoded = Base64.getMimeDecoder().decode(found.group(1));
        String algorithm = publicKey.getAlgorithm();
        PrivateKey key =
                KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(encoded));
        Signature signature = Signature.getInstance("EC".equals(algorithm) ? "SHA256withECDSA"
                : "RSA".equals(algorithm) ? "SHA256withRSA" : algorithm);
        signature.initSign(key);
        signature.update(encoded);
        byte[] signed = signature.sign();
        signature.initVerify(publicKey);
        signature.update(encoded);
        if (!signature.verify(signed)) {
            throw refused(2, file, "is not the key of the certificate");
        }
        return key;
    }

    private static ConfigException refused(int at, Path file, String problem) {
        String setting = new String[] {
            Settings.CA_FILE, Settings.CERTIFICATE_FILE, Settings.KEY_FILE}[at];
        return new ConfigException(
                setting + ": " + file + " " + problem
                        + "; name a PEM file that the broker's user may read");
    }
}
