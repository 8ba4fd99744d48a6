import java.util.Collection;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.common.Node;

/** Prints what Kafka's own client says of every volume: broker id, log dir, total, usable bytes. */
class DescribeLogDirs {
    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            Collection<Node> nodes = admin.describeCluster().nodes().get();
            Map<Integer, Map<String, LogDirDescription>> brokers =
                    admin.describeLogDirs(nodes.stream().map(Node::id).toList())
                            .allDescriptions()
                            .get();
            brokers.forEach((id, logDirs) -> logDirs.forEach((path, logDir) ->
                    System.out.printf("%d\t%s\t%d\t%d%n", id, path,
                            logDir.totalBytes().getAsLong(), logDir.usableBytes().getAsLong())));
        }
    }
}
