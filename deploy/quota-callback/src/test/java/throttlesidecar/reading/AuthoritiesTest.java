package throttlesidecar.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpsConfigurator;
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
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import throttlesidecar.observability.Lines;
import throttlesidecar.support.Clocks;

/** The sidecars that a broker trusts over https. */
public class AuthoritiesTest {
    private static final char[] PASSWORD = "changeit".toCharArray();
    private static final String GOOD = "{\"factor\":0.5,\"valid_for_ms\":299000}";

    @TempDir Path folder;

    /** A sidecar is trusted if its certificate has its name and comes from the configured authority. */
    @Test
    void trustsTheSidecar() throws Exception {
        HttpsServer server = server("sidecar", "dns:localhost");
        try {
            SSLSocketFactory trusted = Authorities.of(pem("sidecar")).getSocketFactory();

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
            SSLSocketFactory others = Authorities.of(pem("other")).getSocketFactory();
            SSLSocketFactory trusted = Authorities.of(pem("sidecar")).getSocketFactory();
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
        Authorities authorities = new Authorities(file, lines);
        SidecarClient client = new SidecarClient(
                URI.create("https://localhost:" + server.getAddress().getPort()), authorities, null,
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

    /** If a file can't be read or contains no certificate, the message names the setting. */
    @Test
    void refusesAFileWithoutCertificates() throws Exception {
        Path empty = Files.createFile(folder.resolve("empty.pem"));
        Path text = Files.writeString(folder.resolve("text.pem"), "no certificate\n");
        for (Path file : new Path[] {folder.resolve("none.pem"), empty, text}) {
            ConfigException error = assertThrows(ConfigException.class, () -> Authorities.of(file));

            assertTrue(error.getMessage().contains("sidecar.ssl.ca.file: " + file), "" + error);
        }
    }

    private static Answer request(HttpsServer server, String host, SSLSocketFactory tls) {
        URI url = URI.create("https://" + host + ":" + server.getAddress().getPort());
        return new SidecarClient(url, () -> tls, null, Clocks.SYSTEM, 5_000).request(null, 0, Map.of());
    }

    private HttpsServer server(String name, String names) throws Exception {
        keytool(folder, name, names);
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(folder.resolve(name))) {
            keys.load(in, PASSWORD);
        }
        KeyManagerFactory managers =
                KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        managers.init(keys, PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(managers.getKeyManagers(), null, null);
        HttpsServer server =
                HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setHttpsConfigurator(new HttpsConfigurator(context));
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
        run("-genkeypair", "-keyalg", "EC", "-dname", "CN=" + name, "-ext", "san=" + names,
                "-keystore", keystore.toString(), "-storetype", "PKCS12", "-alias", "a");
        run("-exportcert", "-rfc", "-keystore", keystore.toString(), "-alias", "a",
                "-file", folder.resolve(name + ".pem").toString());
    }

    private static void run(String... arguments) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        command.addAll(List.of(arguments));
        command.addAll(List.of("-storepass", new String(PASSWORD)));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

        assertEquals(0, process.waitFor(), output);
    }
}
