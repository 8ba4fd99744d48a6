import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentHashMap;
import javax.management.Attribute;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;

/**
 * Prints one MBean of several JVMs that end, are frozen and start again: for each of them a JSON
 * object a line, with its name and the attributes, numbers and booleans as such and all else as text.
 * A JVM that does not answer has no line, and delays no other's.
 *
 * <p>Standard input names the JVMs: a line "NAME PID" is a JVM that runs, "NAME 0" one that does not;
 * at its end this program ends too. A JVM may be named only once it has started: the signal that
 * opens it to an attachment ends one that is not ready for it.
 *
 * <p>Arguments: milliseconds from one line to the next, the MBean's name, and the attributes.
 */
class FollowBeans {
    private static final Map<String, String> PIDS = new ConcurrentHashMap<>();

    private final String name;
    private final long intervalMs;
    private final ObjectName bean;
    private final String[] attributes;
    private String connectedTo = "0";
    private MBeanServerConnection server;

    private FollowBeans(String name, String[] arguments) throws Exception {
        this.name = name;
        intervalMs = Long.parseLong(arguments[0]);
        bean = new ObjectName(arguments[1]);
        attributes = Arrays.copyOfRange(arguments, 2, arguments.length);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        for (String line = names.readLine(); line != null; line = names.readLine()) {
            String[] words = line.split(" ");
            if (PIDS.put(words[0], words[1]) == null) {
                FollowBeans one = new FollowBeans(words[0], arguments);
                Thread thread = new Thread(one::run, words[0]);
                thread.setDaemon(true);
                thread.start();
            }
        }
        System.exit(0);
    }

    private void run() {
        while (true) {
            try {
                String pid = PIDS.get(name);
                if (!pid.equals("0")) {
                    read(pid);
                }
            } catch (Exception gone) {
                // It ended, or can't be attached to yet: it has no line.
                connectedTo = "0";
            }
            try {
                Thread.sleep(intervalMs);
            } catch (InterruptedException ended) {
                return;
            }
        }
    }

    private void read(String pid) throws Exception {
        if (!pid.equals(connectedTo)) {
            server = Attached.beansOf(pid);
            connectedTo = pid;
        }
        StringJoiner line = new StringJoiner(",", "{", "}").add("\"name\":\"" + name + "\"");
        for (Attribute attribute : server.getAttributes(bean, attributes).asList()) {
            Object value = attribute.getValue();
            boolean isText = !(value instanceof Number || value instanceof Boolean);
            line.add("\"" + attribute.getName() + "\":" + (isText ? "\"" + value + "\"" : value));
        }
        System.out.println(line);
    }
}
