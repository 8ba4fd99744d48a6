import com.sun.tools.attach.VirtualMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Prints one attribute of one MBean of several running JVMs, a line of numbers each time, until it is
 * told something on standard input, or whoever started it is gone. One JVM that stays costs the
 * brokers less than one for each reading.
 *
 * <p>Arguments: milliseconds from one line to the next, the MBean's name, the attribute, the pids.
 */
class WatchBean {
    private static final int ATTEMPTS = 3;

    public static void main(String[] arguments) throws Exception {
        long intervalMs = Long.parseLong(arguments[0]);
        ObjectName name = new ObjectName(arguments[1]);
        List<MBeanServerConnection> servers = new ArrayList<>();
        for (int at = 3; at < arguments.length; at++) {
            servers.add(connected(arguments[at]));
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

    private static MBeanServerConnection connected(String pid) throws Exception {
        VirtualMachine machine = attached(pid);
        try {
            return JMXConnectorFactory.connect(
                            new JMXServiceURL(machine.startLocalManagementAgent()))
                    .getMBeanServerConnection();
        } finally {
            machine.detach();
        }
    }

    /**
     * The JVM with that pid and no other. JVMs listen at {@code /tmp/.java_pidN}, where N is the pid
     * in their own namespace: of two clusters in a namespace each, one may stand in the other's place.
     * Without that file the JVM is asked to make it anew.
     */
    private static VirtualMachine attached(String pid) throws Exception {
        Path process = Path.of("/proc", pid);
        String[] words = Files.readString(process.resolve("cmdline")).split("\0");
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            VirtualMachine machine = VirtualMachine.attach(pid);
            String command = machine.getSystemProperties().getProperty("sun.java.command");
            if (command.endsWith(words[words.length - 1])) {
                return machine;
            }
            machine.detach();
            String[] pids = Files.readAllLines(process.resolve("status")).stream()
                    .filter(line -> line.startsWith("NSpid:"))
                    .findFirst()
                    .orElseThrow()
                    .split("\\s+");
            Files.deleteIfExists(
                    process.resolve("root/tmp/.java_pid" + pids[pids.length - 1]));
        }
        throw new IllegalStateException("another JVM answers in the place of process " + pid);
    }
}
