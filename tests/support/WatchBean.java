import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;

/**
 * Prints one attribute of one MBean of several running JVMs, a line of numbers each time, until
 * standard input has a byte or ends, as it does when whoever started it is gone. One JVM that stays
 * costs the brokers less than one for each reading.
 *
 * <p>Arguments: milliseconds from one line to the next, the MBean's name, the attribute, the pids.
 */
class WatchBean {
    public static void main(String[] arguments) throws Exception {
        long intervalMs = Long.parseLong(arguments[0]);
        ObjectName name = new ObjectName(arguments[1]);
        List<MBeanServerConnection> servers = new ArrayList<>();
        for (int at = 3; at < arguments.length; at++) {
            servers.add(Attached.beansOf(arguments[at]));
        }
        Thread end = new Thread(WatchBean::awaitEnd);
        end.setDaemon(true);
        end.start();
        while (true) {
            StringJoiner line = new StringJoiner(" ");
            for (MBeanServerConnection server : servers) {
                line.add(String.valueOf(server.getAttribute(name, arguments[2])));
            }
            System.out.println(line);
            Thread.sleep(intervalMs);
        }
    }

    private static void awaitEnd() {
        try {
            System.in.read();
        } catch (java.io.IOException error) {
            // An end like any other.
        }
        System.exit(0);
    }
}
