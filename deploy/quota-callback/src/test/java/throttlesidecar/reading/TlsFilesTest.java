package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyStore;
import java.util.Base64;
import java.util.Map;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import throttlesidecar.observability.Lines;
import throttlesidecar.support.Clocks;

/** The sidecars that a broker trusts over https, and those that ask it for a certificate. */
public class TlsFilesTest {
    private static final char[] PASSWORD = "changeit".toCharArray();
    private static final String GOOD = "{\"factor\":0.5,\"valid_for_ms\":299000}";

    @TempDir Path folder;

    /** A sidecar is trusted if its certificate has its name and comes from the configured authority. */
    @Test
    void trustsTheSidecar() throws Exception {
        HttpsServer server = server("sidecar", "dns:localhost");
        try {
            SSLSocketFactory trusted = TlsFiles.of(pem("sidecar")).getSocketFactory();

            assertNull(request(server, "localhost", trusted).failure);
        } finally {
            server.stop(0);
        }
    }

    /** A certificate of another authority, or of another host, is not trusted. */
    @Test
    void refusesOthers() throws Exception {
        HttpsServer server = server("sidecar", "dns:localhost");
        keytool(folder, "other", "dns:localhost");
        try {
            SSLSocketFactory others = TlsFiles.of(pem("other")).getSocketFactory();
            SSLSocketFactory trusted = TlsFiles.of(pem("sidecar")).getSocketFactory();
            SSLSocketFactory jdks = SSLContext.getDefault().getSocketFactory();

            for (SSLSocketFactory untrusting : new SSLSocketFactory[] {others, jdks}) {
                String failure = request(server, "localhost", untrusting).failure;
                assertTrue(failure.contains("PKIX"), failure);
            }
            String failure = request(server, "127.0.0.1", trusted).failure;
            assertTrue(failure.contains("127.0.0.1"), failure);
        } finally {
            server.stop(0);
        }
    }

    /** After the file changes the next request trusts its new content, and a broken file changes nothing. */
    @Test
    void readsTheFileAgain() throws Exception {
        HttpsServer server = server("sidecar", "dns:localhost");
        keytool(folder, "other", "dns:localhost");
        Path file = Files.copy(pem("other"), folder.resolve("ca.pem"));
        Lines lines = new Lines();
        TlsFiles files = new TlsFiles(lines, file, null, null);
        SidecarClient client = new SidecarClient(
                URI.create("https://localhost:" + server.getAddress().getPort()), files, null,
                Clocks.SYSTEM, 5_000);
        try {
            assertTrue(client.request(null, 0, Map.of()).failure.contains("PKIX"));
            Files.copy(pem("sidecar"), file, StandardCopyOption.REPLACE_EXISTING);
            assertNull(client.request(null, 0, Map.of()).failure);
            Files.writeString(file, "half a file");
            assertNull(client.request(null, 0, Map.of()).failure);
            Files.delete(file);
            assertNull(client.request(null, 0, Map.of()).failure);
            assertEquals(1, lines.count("stay in use"), lines.toString());
        } finally {
            server.stop(0);
        }
    }

    /**
     * A sidecar that requires a client certificate gets the broker's. While a new one is there without
     * its key, the former one is used. Without one, the request fails.
     */
    @Test
    void presentsACertificate() throws Exception {
        HttpsServer server = server("sidecar", "dns:localhost", "broker");
        Path certificate = Files.copy(pem("broker"), folder.resolve("tls.crt"));
        Path key = folder.resolve("tls.key");
        Files.writeString(key, keyOf("broker"));
        Lines lines = new Lines();
        TlsFiles files = new TlsFiles(lines, pem("sidecar"), certificate, key);
        try {
            assertNull(request(server, "localhost", files.call()).failure);
            keytool(folder, "other", "dns:localhost");
            Files.copy(pem("other"), certificate, StandardCopyOption.REPLACE_EXISTING);
            assertNull(request(server, "localhost", files.call()).failure);
            assertEquals(1, lines.count("tls.key is not the key of the certificate"), lines.toString());
            Files.writeString(key, keyOf("other"));
            // A broker presents no certificate of an authority that the sidecar does not name.
            assertTrue(!request(server, "localhost", files.call()).failure.isEmpty());
            Path both = Files.writeString(
                    folder.resolve("both.pem"), keyOf("broker") + Files.readString(pem("broker")));
            SSLSocketFactory oneFile =
                    TlsFiles.of(pem("sidecar"), both, both).getSocketFactory();
            assertNull(request(server, "localhost", oneFile).failure);
        } finally {
            server.stop(0);
        }
    }

    /** A key in another form is refused in words that say which one is needed, and that show no key. */
    @Test
    void refusesOtherKeys() throws Exception {
        keytool(folder, "broker", "dns:localhost");
        Path key = Files.writeString(
                folder.resolve("tls.key"), keyOf("broker").replace("PRIVATE", "RSA PRIVATE"));
        ConfigException error = assertThrows(
                ConfigException.class, () -> TlsFiles.of(null, pem("broker"), key));

        assertTrue(error.getMessage().contains("ssl.key.file: " + key), "" + error);
        assertTrue(error.getMessage().contains("privateKey.encoding is PKCS8"), "" + error);
    }

    /** If a file can't be read or contains no certificate, the message names the setting. */
    @Test
    void refusesAFileWithoutCertificates() throws Exception {
        Path empty = Files.createFile(folder.resolve("empty.pem"));
        Path text = Files.writeString(folder.resolve("text.pem"), "no certificate\n");
        for (Path file : new Path[] {folder.resolve("none.pem"), empty, text}) {
            ConfigException error = assertThrows(ConfigException.class, () -> TlsFiles.of(file));

            assertTrue(error.getMessage().contains("sidecar.ssl.ca.file: " + file), "" + error);
        }
    }

    private static Answer request(HttpsServer server, String host, SSLSocketFactory tls) {
        URI url = URI.create("https://" + host + ":" + server.getAddress().getPort());
        return new SidecarClient(url, () -> tls, null, Clocks.SYSTEM, 5_000).request(null, 0, Map.of());
    }

    private String keyOf(String name) throws Exception {
        byte[] key = keys(name).getKey("a", PASSWORD).getEncoded();
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(key);
        return "-----BEGIN PRIVATE KEY-----\n" + text + "\n-----END PRIVATE KEY-----\n";
    }

    private KeyStore keys(String name) throws Exception {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(folder.resolve(name))) {
            keys.load(in, PASSWORD);
        }
        return keys;
    }

    private HttpsServer server(String name, String names, String... clients) throws Exception {
        keytool(folder, name, names);
        KeyStore keys = keys(name);
        TrustManager[] trust = null;
        for (String client : clients) {
            keytool(folder, client, "dns:client");
            KeyStore trusted = KeyStore.getInstance("PKCS12");
            trusted.load(null, null);
            trusted.setCertificateEntry(client, keys(client).getCertificate("a"));
            TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
            factory.init(trusted);
            trust = factory.getTrustManagers();
        }
        KeyManagerFactory managers =
                KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        managers.init(keys, PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(managers.getKeyManagers(), trust, null);
        HttpsServer server =
                HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setHttpsConfigurator(new HttpsConfigurator(context) {
            @Override
            public void configure(HttpsParameters parameters) {
                SSLParameters tls = context.getDefaultSSLParameters();
                tls.setNeedClientAuth(clients.length > 0);
                parameters.setSSLParameters(tls);
            }
        });
        server.createContext(
                "/",
                exchange -> {
                    byte[] body = GOOD.getBytes(StandardCharsets.UTF_8);
                    exchange.sendResponseHeaders(200, body.length);
                    exchange.getResponseBody().write(body);
                    exchange.close();
                });
        server.start();
        return server;
    }

    private Path pem(String name) {
        return folder.resolve(name + ".pem");
    }

    /** Makes a key store, and NAME.pem with its certificate. */
    public static void keytool(Path folder, String name, String names) throws Exception {
        Path keystore = folder.resolve(name);
        String password = new String(PASSWORD);
        Process process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-J-XX:TieredStopAtLevel=1", "-genkeypair", "-keyalg", "EC", "-dname", "CN=" + name,
                "-ext", "san=" + names, "-keystore", keystore.toString(), "-storetype", "PKCS12",
                "-alias", "a", "-storepass", password).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);

        byte[] certificate = KeyStore.getInstance(keystore.toFile(), PASSWORD)
                .getCertificate("a").getEncoded();
        Files.writeString(folder.resolve(name + ".pem"), "-----BEGIN CERTIFICATE-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(certificate)
                + "\n-----END CERTIFICATE-----\n");
    }
}
