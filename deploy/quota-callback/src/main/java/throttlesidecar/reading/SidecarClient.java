package throttlesidecar.reading;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import throttlesidecar.decision.Leak;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;

/**
 * Requests the document of factors from one sidecar, with a new connection for each request.
 *
 * <p>A request ends with an {@link Answer} by its deadline, whatever the other end does, and leaves
 * nothing open. The JDK's HttpClient can't guarantee that. Before the updates of October 2024 it does
 * not limit the head of an answer. After them (tested on 17.0.15) it never closes a connection whose
 * head was too large. So this class uses a socket. It follows no redirects and uses no proxies, because
 * the answer must come from the configured address and the token must go nowhere else.
 *
 * <p>Example: the entity tag {@code "a-7"} is sent with a wait of 10 s. A sidecar that has {@code
 * "a-8"} answers at once; otherwise it answers with 304 after 10 s. After 12 s the request fails.
 */
public final class SidecarClient {
    /** Finds the addresses of a host, as {@link InetAddress#getAllByName} does. */
    interface Resolver {
        InetAddress[] of(String host) throws UnknownHostException;
    }

    static final String PATH = "/v1/quota-factors";

    /** How long an answer may take beyond the requested wait. */
    public static final long TIMEOUT_MS = 2_000;

    private static final int CONNECT_MS = 1_000;
    private static final int LONGEST_TOKEN = 16 << 10;
    private static final Pattern TOKEN = Pattern.compile("[\\x21-\\x7e]+");
    private static final Pattern ETAG = Pattern.compile("(?:W/)?\"[\\x21\\x23-\\x7e]{0,200}\"");
    private static final Pattern MS = Pattern.compile("[0-9]{1,18}");
    private static final Pattern NUMBER = Pattern.compile("[0-9]{1,15}(?:\\.[0-9]{1,15})?");

    private final String host;
    private final int port;
    private final String authority;
    private final String path;
    private final Callable<SSLSocketFactory> tls;
    private final Path tokenFile;
    private final Clocks clocks;
    private final long timeoutMs;
    private final Bounded<InetAddress[]> addresses;
    private final Bounded<Credentials> credentials;
    private volatile Socket open;
    private volatile boolean closed;

    /** The number of the address that answered last, or of the next one after a failure. */
    private int first;

    /**
     * A client of one sidecar.
     *
     * @param url the sidecar's, without {@link #PATH}; http or https.
     * @param tls what makes the sockets for https; asked for each request, as files change.
     * @param tokenFile contains the bearer token, and is read for each request; null for none.
     * @param timeoutMs see {@link #TIMEOUT_MS}.
     */
    public SidecarClient(
            URI url, Callable<SSLSocketFactory> tls, Path tokenFile, Clocks clocks, long timeoutMs) {
        this(url, tls, tokenFile, clocks, timeoutMs, InetAddress::getAllByName);
    }

    SidecarClient(
            URI url, Callable<SSLSocketFactory> tls, Path tokenFile, Clocks clocks, long timeoutMs,
            Resolver resolver) {
        boolean https = url.getScheme().equalsIgnoreCase("https");
        this.host = url.getHost();
        this.port = url.getPort() >= 0 ? url.getPort() : https ? 443 : 80;
        this.authority = url.getPort() >= 0 ? host + ":" + port : host;
        String folder = url.getRawPath() == null ? "" : url.getRawPath();
        this.path = folder.replaceFirst("/+$", "") + PATH;
        this.tls = https ? tls : null;
        this.tokenFile = tokenFile;
        this.clocks = clocks;
        this.timeoutMs = timeoutMs;
        // Without a name server a look-up takes half a minute.
        this.addresses = new Bounded<>("throttle-sidecar-resolver", () -> resolver.of(host));
        this.credentials = new Bounded<>("throttle-sidecar-files", this::readFiles);
    }

    /** What the files of the settings contain at the time of a request. */
    private static final class Credentials {
        private static final Credentials NONE = new Credentials(null, null);

        private final String token;
        private final SSLSocketFactory tls;

        Credentials(String token, SSLSocketFactory tls) {
            this.token = token;
            this.tls = tls;
        }
    }

    private Credentials readFiles() throws Exception {
        return new Credentials(tokenFile == null ? null : token(), tls == null ? null : tls.call());
    }

    /**
     * Sends one request, on the caller's thread.
     *
     * @param etag of the last document; null for none.
     * @param waitS how long the sidecar may wait for a change before it answers.
     * @param reportHeaders this broker's report.
     * @return the answer; a failure if {@link #close()} is called meanwhile.
     */
    Answer request(String etag, int waitS, Map<String, String> reportHeaders) {
        long deadlineMs = TimeUnit.SECONDS.toMillis(waitS) + timeoutMs;
        CompletableFuture<Boolean> late = new CompletableFuture<>();
        late.completeOnTimeout(true, deadlineMs, TimeUnit.MILLISECONDS).thenRun(this::closeOpen);
        try {
            Credentials now = tokenFile == null && tls == null
                    ? Credentials.NONE
                    : credentials.get(timeoutMs / 2, "content of the token file or of the TLS files");
            String head = requestHead(etag, waitS, reportHeaders, now.token);
            try (Socket socket = connected(late)) {
                // Another plugin may block the JVM's only thread for the deadline above.
                socket.setSoTimeout(Math.toIntExact(deadlineMs));
                return exchange(socket, now.tls, head, etag);
            }
        } catch (WrongAnswer wrong) {
            return Answer.failed(wrong);
        } catch (IOException error) {
            // Of many addresses that hang, one request reaches only the first ones.
            first++;
            return Answer.failed(
                    late.isDone()
                            ? "no whole answer within " + deadlineMs + " ms"
                            : DocumentReader.printable(error.toString()));
        } finally {
            late.cancel(false);
            open = null;
        }
    }

    /** As {@link #request}; a bug becomes a failure, so that the caller's thread does not end. */
    Answer requestOrFail(String etag, int waitS, Map<String, String> reportHeaders) {
        try {
            return request(etag, waitS, reportHeaders);
        } catch (RuntimeException | Error bug) {
            return Answer.failed("an unexpected error: " + bug);
        }
    }

    /** Ends the current request, from another thread, and all later ones. */
    void close() {
        closed = true;
        closeOpen();
    }

    private void closeOpen() {
        Socket socket = open;
        if (socket != null) {
            close(socket);
        }
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException ignored) {
            // The socket is closed in any case.
        }
    }

    /** Connects to an address that answers: of the two of "localhost", one may be unused. */
    private Socket connected(CompletableFuture<Boolean> late) throws IOException {
        IOException failure = null;
        InetAddress[] all = addresses.get(timeoutMs / 2, "address of " + host);
        for (int tries = 0; tries < all.length; tries++) {
            InetAddress address = all[Math.floorMod(first + tries, all.length)];
            // The JVM may have a proxy, which must not see the token.
            Socket socket = new Socket(Proxy.NO_PROXY);
            open = socket;
            try {
                if (closed || late.isDone()) {
                    throw new SocketException("closed");
                }
                socket.connect(new InetSocketAddress(address, port), CONNECT_MS);
                first += tries;
                return socket;
            } catch (IOException error) {
                close(socket);
                failure = failure == null ? error : failure;
            }
        }
        throw failure == null ? new UnknownHostException(host) : failure;
    }

    private Answer exchange(Socket socket, SSLSocketFactory factory, String requestHead, String etag)
            throws IOException, WrongAnswer {
        socket.setTcpNoDelay(true);
        Socket stream = factory == null ? socket : secured(socket, factory);
        stream.getOutputStream().write(requestHead.getBytes(StandardCharsets.US_ASCII));
        BufferedInputStream in = new BufferedInputStream(stream.getInputStream());
        in.mark(1);
        in.read();
        // The time of the first byte, because a body that arrives slowly is not younger.
        long atNanos = clocks.nanos();
        in.reset();
        return answer(HttpAnswer.read(in), etag, atNanos);
    }

    private Socket secured(Socket socket, SSLSocketFactory factory) throws IOException {
        SSLSocket secured = (SSLSocket) factory.createSocket(socket, host, port, true);
        SSLParameters parameters = secured.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        secured.setSSLParameters(parameters);
        secured.startHandshake();
        return secured;
    }

    private String requestHead(
            String etag, int waitS, Map<String, String> reportHeaders, String token) {
        StringBuilder head = new StringBuilder("GET " + path + " HTTP/1.1\r\n");
        head.append("Host: ").append(authority).append("\r\n");
        head.append("User-Agent: throttle-sidecar-quota-callback\r\n");
        head.append("Accept: application/json\r\n");
        head.append("Connection: close\r\n");
        if (etag != null) {
            head.append("If-None-Match: ").append(etag).append("\r\n");
            head.append("Prefer: wait=").append(waitS).append("\r\n");
        }
        reportHeaders.forEach((name, value) ->
                head.append(name).append(": ").append(value).append("\r\n"));
        if (token != null) {
            head.append("Authorization: Bearer ").append(token).append("\r\n");
        }
        return head.append("\r\n").toString();
    }

    private String token() throws IOException {
        String text;
        try {
            if (Files.size(tokenFile) > LONGEST_TOKEN) {
                throw new IOException("it has more than " + LONGEST_TOKEN + " bytes");
            }
            text = new String(Files.readAllBytes(tokenFile), StandardCharsets.ISO_8859_1).strip();
        } catch (IOException error) {
            throw new IOException("the token file can't be read: " + error, error);
        }
        if (!TOKEN.matcher(text).matches()) {
            throw new IOException("the token file " + tokenFile + " contains no bearer token");
        }
        return text;
    }

    static Answer answer(HttpAnswer http, String etag, long atNanos) throws WrongAnswer {
        Answer answer;
        if (http.status == 200) {
            String tag = http.header("etag");
            answer = Answer.modified(
                    DocumentReader.read(http.body),
                    tag != null && ETAG.matcher(tag).matches() ? tag : null, atNanos);
        } else if (http.status == 304 && etag != null) {
            long validForMs = millis(http, "Throttle-Valid-For-Ms", -1);
            if (validForMs < 0) {
                throw noNumber("Throttle-Valid-For-Ms");
            }
            answer = Answer.notModified(validForMs, Leak.WHOLE, atNanos);
        } else {
            throw new WrongAnswer(status(http.status));
        }
        answer.leak = leak(http);
        answer.observedMsAgo = millis(http, "Throttle-Observed-Ms-Ago", 0);
        answer.limitInMs = millis(http, "Throttle-Limit-In-Ms", -1);
        answer.factor = number(http, "Throttle-Factor");
        if (answer.factor > 1.0) {
            throw new WrongAnswer("Throttle-Factor is no number within [0, 1]");
        }
        return answer;
    }

    private static String status(int status) {
        String hint = "";
        if (status / 100 == 3) {
            hint = ", and redirects are not followed";
        } else if (status == 401 || status == 403) {
            hint = ", see " + Settings.TOKEN_FILE + ", and " + Settings.CERTIFICATE_FILE
                    + " if the sidecar requires a client certificate";
        } else if (status == 404) {
            hint = ", is it a throttle-sidecar that has " + PATH + "?";
        }
        return "HTTP status " + status + hint;
    }

    private static long millis(HttpAnswer http, String header, long otherwise) throws WrongAnswer {
        String text = http.header(header);
        if (text != null && !MS.matcher(text).matches()) {
            throw noNumber(header);
        }
        return text == null
                ? otherwise
                : Math.min(Long.parseLong(text), DocumentReader.LONGEST_VALIDITY_MS);
    }

    private static double number(HttpAnswer http, String header) throws WrongAnswer {
        String text = http.header(header);
        if (text != null && !NUMBER.matcher(text).matches()) {
            throw noNumber(header);
        }
        return text == null ? Double.NaN : Double.parseDouble(text);
    }

    private static WrongAnswer noNumber(String header) {
        return new WrongAnswer(header + " is missing or no number");
    }

    /** The broker's leak. Without both headers the whole budget may leak; one alone is an error. */
    private static Leak leak(HttpAnswer http) throws WrongAnswer {
        double share = number(http, "Throttle-Leak-Share");
        long pauseMaxMs = millis(http, "Throttle-Pause-Max-Ms", -1);
        if (Double.isNaN(share) != pauseMaxMs < 0) {
            throw noNumber(pauseMaxMs < 0 ? "Throttle-Pause-Max-Ms" : "Throttle-Leak-Share");
        }
        return pauseMaxMs < 0 ? Leak.WHOLE : new Leak(share, pauseMaxMs);
    }
}
