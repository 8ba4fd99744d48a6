import com.sun.tools.attach.VirtualMachine;
import java.util.Arrays;
import java.util.StringJoiner;
import javax.management.Attribute;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Prints the MBeans of a running JVM whose names match a pattern: as JSON, an object for each name
 * with its attributes, numbers and booleans as such and all else as text. Attached by pid, so the JVM
 * has no port for it and needs no option.
 *
 * <p>Arguments: the pid, and the pattern, such as {@code throttlesidecar:*}.
 */
class ReadBeans {
    public static void main(String[] arguments) throws Exception {
        VirtualMachine machine = Attached.to(arguments[0]);
        try (JMXConnector connector =
                JMXConnectorFactory.connect(
                        new JMXServiceURL(machine.startLocalManagementAgent()))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            StringJoiner beans = new StringJoiner(",", "{", "}");
            for (ObjectName name : server.queryNames(new ObjectName(arguments[1]), null)) {
                beans.add(text(name.toString()) + ":" + attributes(server, name));
            }
            System.out.println(beans);
        } finally {
            machine.detach();
        }
        // The connector's threads would live on for minutes.
        System.exit(0);
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
