package throttlesidecar.reading;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One answer of HTTP/1.1 (RFC 9112) to a GET with {@code Connection: close}. {@link SidecarClient}
 * explains why the JDK's client is not used.
 *
 * <p>At most {@link #MOST_HEAD} bytes of a head and {@link #MOST_BODY} bytes of a body are read. The
 * body is read only if the status is 200. Anything that does not parse is an error.
 *
 * <p>Example: {@code HTTP/1.1 200 OK}, {@code Content-Length: 2}, an empty line and {@code {}} are the
 * status 200, one header and a body of 2 bytes. A third byte is left unread.
 */
final class HttpAnswer {
    static final int MOST_HEAD = 32 << 10;

    /** 10,000 users with long names take 1 MiB. */
    static final int MOST_BODY = 4 << 20;

    private static final Pattern STATUS = Pattern.compile("HTTP/1\\.[01] ([0-9]{3})(?: .*)?");
    private static final Pattern NAME = Pattern.compile("[!-9;-~]+");
    private static final Pattern LENGTH = Pattern.compile("[0-9]{1,18}");
    private static final Pattern CHUNK = Pattern.compile("([0-9A-Fa-f]{1,8})(?:[ \\t]*;.*)?");

    private final InputStream in;
    private int headLeft = MOST_HEAD;
    private final Map<String, String> headers = new HashMap<>();

    int status;

    /** The body if the status is 200, else empty. */
    byte[] body = new byte[0];

    private HttpAnswer(InputStream in) {
        this.in = in;
    }

    /**
     * Reads one answer.
     *
     * @param in buffered, at the beginning of the answer; bytes after the answer are left unread.
     * @throws WrongAnswer the answer can't be used; the message is the reason.
     * @throws IOException the connection failed.
     */
    static HttpAnswer read(InputStream in) throws IOException, WrongAnswer {
        HttpAnswer answer = new HttpAnswer(in);
        do {
            // Answers of status 1xx precede the final one.
            answer.readHead();
        } while (answer.status / 100 == 1);
        if (answer.status == 200) {
            answer.body = answer.readBody();
        }
        return answer;
    }

    /** A header's value; null for none. */
    String header(String name) {
        return headers.get(name.toLowerCase(Locale.ROOT));
    }

    private void readHead() throws IOException, WrongAnswer {
        headers.clear();
        Matcher first = STATUS.matcher(line());
        if (!first.matches()) {
            throw new WrongAnswer("it is not HTTP");
        }
        status = Integer.parseInt(first.group(1));
        for (String line = line(); !line.isEmpty(); line = line()) {
            // Not one pattern for the whole line, which would read blanks within a value many times.
            int colon = line.indexOf(':');
            if (colon < 0 || !NAME.matcher(line.substring(0, colon)).matches()) {
                throw new WrongAnswer("it is not HTTP: a header can't be read");
            }
            String name = line.substring(0, colon).toLowerCase(Locale.ROOT);
            String value = line.substring(colon + 1).strip();
            String earlier = headers.putIfAbsent(name, value);
            if (earlier != null && !earlier.equals(value) && matters(name)) {
                throw new WrongAnswer("it has several headers " + name);
            }
        }
    }

    /** Whether two values of a header contradict each other. Two of Set-Cookie, for example, do not. */
    private static boolean matters(String name) {
        return name.equals("content-length")
                || name.equals("transfer-encoding")
                || name.equals("etag")
                || name.startsWith("throttle-");
    }

    private byte[] readBody() throws IOException, WrongAnswer {
        String encoding = headers.get("content-encoding");
        if (encoding != null && !encoding.equalsIgnoreCase("identity")) {
            throw new WrongAnswer("its body is encoded, which was not requested");
        }
        String transfer = headers.get("transfer-encoding");
        String length = headers.get("content-length");
        if (transfer != null) {
            if (!transfer.equalsIgnoreCase("chunked") || length != null) {
                throw new WrongAnswer("its length is ambiguous");
            }
            return chunks();
        }
        if (length == null) {
            byte[] rest = in.readNBytes(MOST_BODY + 1);
            bounded(rest.length);
            return rest;
        }
        if (!LENGTH.matcher(length).matches()) {
            throw new WrongAnswer("its Content-Length is no number");
        }
        return exactly(bounded(Long.parseLong(length)));
    }

    private byte[] chunks() throws IOException, WrongAnswer {
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        while (true) {
            Matcher head = CHUNK.matcher(line());
            if (!head.matches()) {
                throw new WrongAnswer("it is not HTTP: a chunk can't be read");
            }
            long size = Long.parseLong(head.group(1), 16);
            if (size == 0) {
                return whole.toByteArray();
            }
            bounded(whole.size() + size);
            whole.write(exactly((int) size));
            if (!line().isEmpty()) {
                throw new WrongAnswer("it is not HTTP: a chunk is longer than its size");
            }
        }
    }

    private static int bounded(long size) throws WrongAnswer {
        if (size > MOST_BODY) {
            throw new WrongAnswer("it has more than " + MOST_BODY + " bytes");
        }
        return (int) size;
    }

    private byte[] exactly(int size) throws IOException, WrongAnswer {
        // The buffer grows as bytes arrive: a claimed length alone takes no memory.
        byte[] bytes = in.readNBytes(size);
        if (bytes.length < size) {
            throw endsTooEarly();
        }
        return bytes;
    }

    /** A line of the head or between chunks, without the line's end. */
    private String line() throws IOException, WrongAnswer {
        ByteArrayOutputStream line = new ByteArrayOutputStream(128);
        while (true) {
            int next = in.read();
            if (next < 0) {
                throw endsTooEarly();
            }
            if (--headLeft < 0) {
                throw new WrongAnswer("its head has more than " + MOST_HEAD + " bytes");
            }
            if (next == '\n') {
                break;
            }
            line.write(next);
        }
        String text = line.toString(StandardCharsets.ISO_8859_1);
        return text.endsWith("\r") ? text.substring(0, text.length() - 1) : text;
    }

    private static WrongAnswer endsTooEarly() {
        return new WrongAnswer("it ends too early");
    }
}
