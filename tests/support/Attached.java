import com.sun.tools.attach.VirtualMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.management.MBeanServerConnection;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Attaches to running JVMs, for the programs beside this one. */
final class Attached {
    private static final int ATTEMPTS = 3;

    private Attached() {}

    /**
     * The JVM with that pid and no other. JVMs listen at {@code /tmp/.java_pidN}, where N is the pid
     * in their own namespace: of two clusters in a namespace each, one may stand in the other's place.
     * Without that file the JVM is asked to make it anew.
     */
    static VirtualMachine to(String pid) throws Exception {
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

    /** The MBeans of the JVM with that pid; the connection lasts as long as this program. */
    static MBeanServerConnection beansOf(String pid) throws Exception {
        VirtualMachine machine = to(pid);
        try {
            return JMXConnectorFactory.connect(
                            new JMXServiceURL(machine.startLocalManagementAgent()))
                    .getMBeanServerConnection();
        } finally {
            machine.detach();
        }
    }
}
