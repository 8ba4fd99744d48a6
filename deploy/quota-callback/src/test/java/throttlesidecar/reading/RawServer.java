package throttlesidecar.reading;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** A server with any answers, HTTP or not. It handles one request for each connection. */
public final class RawServer implements AutoCloseable {

    /** Writes the answer to one request; the connection is closed when it returns. */
    public interface Answering {
        void answer(List<String> head, OutputStream out) throws IOException, InterruptedException;
    }

    private final ServerSocket socket;
    private final Answering answering;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final Set<Thread> threads = ConcurrentHashMap.newKeySet();

    /** The heads of the requests, each as a list of lines. */
    public final List<List<String>> heads = new CopyOnWriteArrayList<>();

    /** How many answers ended because the client had closed the connection. */
    public final AtomicInteger broken = new AtomicInteger();

    public RawServer(Answering answering) throws IOException {
        this(0, answering);
    }

    public RawServer(int port, Answering answering) throws IOException {
        this.answering = answering;
        socket = new ServerSocket();
        socket.setReuseAddress(true);
        socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        start(this::accept);
    }

    /** An answer in one piece. */
    public static byte[] http(String status, String headers, String body) {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        String head =
                String.format(
                        "HTTP/1.1 %s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n",
                        status, headers, bytes.length);
        byte[] whole =
                Arrays.copyOf(
                        head.getBytes(StandardCharsets.US_ASCII), head.length() + bytes.length);
        System.arraycopy(bytes, 0, whole, head.length(), bytes.length);
        return whole;
    }

    public URI url() {
        return URI.create("http://127.0.0.1:" + port());
    }

    public int port() {
        return socket.getLocalPort();
    }

    private void start(Runnable task) {
        Thread thread = new Thread(task, "raw-server");
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    private void accept() {
        while (!socket.isClosed()) {
            try {
                Socket accepted = socket.accept();
                open.add(accepted);
                start(() -> serve(accepted));
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void serve(Socket accepted) {
        try (Socket connection = accepted) {
            BufferedReader reader =
                    new BufferedReader(
                            new InputStreamReader(
                                    connection.getInputStream(), StandardCharsets.US_ASCII));
            List<String> head = new CopyOnWriteArrayList<>();
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                if (line.isEmpty()) {
                    heads.add(head);
                    answering.answer(head, connection.getOutputStream());
                    return;
                }
                head.add(line);
            }
        } catch (IOException closed) {
            broken.incrementAndGet();
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        } finally {
            open.remove(accepted);
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
        for (Socket connection : open) {
            connection.close();
        }
        threads.forEach(Thread::interrupt);
    }
}
