import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;
import javax.management.Attribute;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;

/**
 * Reads the MBeans of running JVMs. Each line of standard input is a pid and a pattern of names, such
 * as {@code 4711 throttlesidecar:*}; the answer is a line of JSON, an object for each name with its
 * attributes, numbers and booleans as such and all else as text, or "!" and why they can't be read.
 *
 * <p>One JVM that stays costs less than a tenth of one for each reading. It attaches by pid, so the
 * others have no port for it and need no option, and ends with standard input.
 */
class ReadBeans {
    private static final Map<String, MBeanServerConnection> SERVERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ", 2);
            try {
                System.out.println(beans(words[0], words[1]));
            } catch (Exception error) {
                SERVERS.remove(words[0]);
                System.out.println("!" + error.toString().replaceAll("\\R", " "));
            }
        }
        // The connectors' threads would live on for minutes.
        System.exit(0);
    }

    private static String beans(String pid, String pattern) throws Exception {
        if (!SERVERS.containsKey(pid)) {
            SERVERS.put(pid, Attached.beansOf(pid));
        }
        MBeanServerConnection server = SERVERS.get(pid);
        StringJoiner beans = new StringJoiner(",", "{", "}");
        for (ObjectName name : server.queryNames(new ObjectName(pattern), null)) {
            beans.add(text(name.toString()) + ":" + attributes(server, name));
        }
        return beans.toString();
    }

    private static String attributes(MBeanServerConnection server, ObjectName name)
            throws Exception {
        String[] readable = Arrays.stream(server.getMBeanInfo(name).getAttributes())
                .filter(MBeanAttributeInfo::isReadable)
                .map(MBeanAttributeInfo::getName)
                .toArray(String[]::new);
        StringJoiner values = new StringJoiner(",", "{", "}");
        for (Attribute attribute : server.getAttributes(name, readable).asList()) {
            values.add(text(attribute.getName()) + ":" + value(attribute.getValue()));
        }
        return values.toString();
    }

    private static String value(Object value) {
        boolean isNumber = value instanceof Number && Double.isFinite(((Number) value).doubleValue());
        return value == null || isNumber || value instanceof Boolean
                ? String.valueOf(value)
                : text(String.valueOf(value));
    }

    private static String text(String text) {
        StringBuilder escaped = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each < ' ' || each == '"' || each == '\\') {
                escaped.append(String.format("\\u%04x", (int) each));
            } else {
                escaped.append(each);
            }
        }
        return escaped.append('"').toString();
    }
}
