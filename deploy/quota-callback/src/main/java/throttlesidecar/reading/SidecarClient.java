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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import throttlesidecar.decision.Leak;
import throttlesidecar.support.Clocks;

/**
 * Requests the document of factors from one sidecar, with a new connection for each request.
 *
 * <p>A request ends with an {@link Answer} by its deadline, whatever the other end does, and leaves
 * nothing open. So this is a socket and not the JDK's HttpClient: that one does not bound a head
 * before its updates of October 2024, and after them (tried on 17.0.15) it never closes the
 * connection of a head that was too large, a file descriptor of the broker's each. Redirects are not
 * followed and proxies not used: the answer must come from the configured address, and the token must
 * be sent nowhere else.
 *
 * <p>Example: to the entity tag {@code "a-7"} and a wait of 10 s the sidecar answers at once when it
 * is at {@code "a-8"}, else with 304 after 10 s; after 12 s the request has failed.
 */
public final class SidecarClient {
    static final String PATH = "/v1/quota-factors";

    /** What an answer may take beyond the requested wait, ms. */
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
    private final SSLSocketFactory tls;
    private final Path tokenFile;
    private final Clocks clocks;
    private final long timeoutMs;
    private final Addresses addresses;
    private volatile Socket open;
    private volatile boolean closed;

    /**
     * @param url the sidecar's, without {@link #PATH}; http or https.
     * @param tls for https; of no use for http.
     * @param tokenFile the bearer token, read anew for each request; null: none.
     * @param timeoutMs as {@link #TIMEOUT_MS}.
     */
    public SidecarClient(
            URI url, SSLSocketFactory tls, Path tokenFile, Clocks clocks, long timeoutMs) {
        this(url, tls, tokenFile, clocks, timeoutMs, InetAddress::getAllByName);
    }

    /** The same with another resolver of names. */
    SidecarClient(
            URI url,
            SSLSocketFactory tls,
            Path tokenFile,
            Clocks clocks,
            long timeoutMs,
            Addresses.Resolver resolver) {
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
        this.addresses = new Addresses(host, resolver);
    }

    /**
     * Sends one request, on the caller's thread.
     *
     * @param etag of the last document; null: there is none.
     * @param waitS for how long the sidecar may wait for a change before it answers, s.
     * @param reportHeaders this broker's report.
     * @return the answer; a failure when {@link #close()} was called meanwhile.
     */
    Answer request(String etag, int waitS, Map<String, String> reportHeaders) {
        long deadlineMs = TimeUnit.SECONDS.toMillis(waitS) + timeoutMs;
        CompletableFuture<Boolean> late = new CompletableFuture<>();
        late.completeOnTimeout(true, deadlineMs, TimeUnit.MILLISECONDS).thenRun(this::closeOpen);
        try {
            String head = requestHead(etag, waitS, reportHeaders);
            try (Socket socket = connected(late)) {
                return exchange(socket, head, etag);
            }
        } catch (WrongAnswer wrong) {
            return Answer.failed(wrong);
        } catch (IOException error) {
            return Answer.failed(
                    late.isDone()
                            ? "no whole answer within " + deadlineMs + " ms"
                            : DocumentReader.printable(error.toString()));
        } finally {
            late.cancel(false);
            open = null;
        }
    }

    /** Ends the request under way, from another thread, and all later ones. */
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
            // It is closed all the same.
        }
    }

    /** The first of the host's addresses that answers: "localhost" may be two, and one in use. */
    private Socket connected(CompletableFuture<Boolean> late) throws IOException {
        IOException failure = null;
        for (InetAddress address : addresses.within(timeoutMs / 2)) {
            // The JVM may have a proxy for all else, which must not see the token.
            Socket socket = new Socket(Proxy.NO_PROXY);
            open = socket;
            try {
                if (closed || late.isDone()) {
                    throw new SocketException("closed");
                }
                socket.connect(new InetSocketAddress(address, port), CONNECT_MS);
                return socket;
            } catch (IOException error) {
                close(socket);
                failure = failure == null ? error : failure;
            }
        }
        throw failure == null ? new UnknownHostException(host) : failure;
    }

    private Answer exchange(Socket socket, String requestHead, String etag)
            throws IOException, WrongAnswer {
        socket.setTcpNoDelay(true);
        Socket stream = tls == null ? socket : secured(socket);
        stream.getOutputStream().write(requestHead.getBytes(StandardCharsets.US_ASCII));
        BufferedInputStream in = new BufferedInputStream(stream.getInputStream());
        in.mark(1);
        in.read();
        // From here: a body that comes slowly does not become younger by it.
        long atNanos = clocks.nanos();
        in.reset();
        return answer(HttpAnswer.read(in), etag, atNanos);
    }

    private Socket secured(Socket socket) throws IOException {
        SSLSocket secured = (SSLSocket) tls.createSocket(socket, host, port, true);
        SSLParameters parameters = secured.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        secured.setSSLParameters(parameters);
        secured.startHandshake();
        return secured;
    }

    private String requestHead(String etag, int waitS, Map<String, String> reportHeaders)
            throws IOException {
        StringBuilder head = new StringBuilder();
        head.append("GET ").append(path).append(" HTTP/1.1\r\n");
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
        if (tokenFile != null) {
            head.append("Authorization: Bearer ").append(token()).append("\r\n");
        }
        return head.append("\r\n").toString();
    }

    private String token() throws IOException {
        String text;
        try {
            if (Files.size(tokenFile) > LONGEST_TOKEN) {
                throw new IOException("it is larger than a token is");
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
        if (http.status() == 200) {
            Document document = DocumentReader.read(http.body());
            return Answer.modified(document, etag(http), leak(http), atNanos, observedMsAgo(http))
                    .limitIn(limitInMs(http))
                    .factor(factor(http));
        }
        if (http.status() == 304 && etag != null) {
            return Answer.notModified(validForMs(http), leak(http), atNanos, observedMsAgo(http))
                    .limitIn(limitInMs(http))
                    .factor(factor(http));
        }
        throw new WrongAnswer(status(http.status()));
    }

    private static String status(int status) {
        String hint = "";
        if (status / 100 == 3) {
            hint = ", and redirects are not followed";
        } else if (status == 401 || status == 403) {
            hint = ", see client.quota.callback.sidecar.token.file";
        } else if (status == 404) {
            hint = ", is it a throttle-sidecar that has " + PATH + "?";
        }
        return "HTTP status " + status + hint;
    }

    private static String etag(HttpAnswer http) {
        String tag = http.header("etag");
        return tag != null && ETAG.matcher(tag).matches() ? tag : null;
    }

    private static long validForMs(HttpAnswer http) throws WrongAnswer {
        String text = http.header("throttle-valid-for-ms");
        if (text == null || !MS.matcher(text).matches()) {
            throw new WrongAnswer("Throttle-Valid-For-Ms is missing or no number");
        }
        return Math.min(Long.parseLong(text), DocumentReader.LONGEST_VALIDITY_MS);
    }

    /** Older sidecars don't say. */
    private static long observedMsAgo(HttpAnswer http) throws WrongAnswer {
        String text = http.header("throttle-observed-ms-ago");
        if (text == null) {
            return 0;
        }
        if (!MS.matcher(text).matches()) {
            throw new WrongAnswer("Throttle-Observed-Ms-Ago is no number");
        }
        return Math.min(Long.parseLong(text), DocumentReader.LONGEST_VALIDITY_MS);
    }

    /** There is none where no volume is close to its limit. */
    private static long limitInMs(HttpAnswer http) throws WrongAnswer {
        String text = http.header("throttle-limit-in-ms");
        if (text == null) {
            return -1;
        }
        if (!MS.matcher(text).matches()) {
            throw new WrongAnswer("Throttle-Limit-In-Ms is no number");
        }
        return Math.min(Long.parseLong(text), DocumentReader.LONGEST_VALIDITY_MS);
    }

    /** There is none where it is the document's. */
    private static double factor(HttpAnswer http) throws WrongAnswer {
        String text = http.header("throttle-factor");
        if (text == null) {
            return Double.NaN;
        }
        if (!NUMBER.matcher(text).matches() || Double.parseDouble(text) > 1.0) {
            throw new WrongAnswer("Throttle-Factor is no number within [0, 1]");
        }
        return Double.parseDouble(text);
    }

    /** There is none where the whole budget may leak. */
    private static Leak leak(HttpAnswer http) throws WrongAnswer {
        String share = http.header("throttle-leak-share");
        String pause = http.header("throttle-pause-max-ms");
        if (share == null && pause == null) {
            return Leak.WHOLE;
        }
        if (share == null || !NUMBER.matcher(share).matches()) {
            throw new WrongAnswer("Throttle-Leak-Share is missing or no number");
        }
        if (pause == null || !MS.matcher(pause).matches()) {
            throw new WrongAnswer("Throttle-Pause-Max-Ms is missing or no number");
        }
        return new Leak(Double.parseDouble(share), Long.parseLong(pause));
    }
}
