import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A share group with a topic for dead letters (KIP-1191), which needs Kafka 4.4. The argument is the
 * bootstrap server. For each line of standard input the group rejects a record, and the answer is how
 * many dead letters there are after at most 6 s.
 */
class DeadLetters {
    private static final String LETTERS = "dlq.orders";
    private static final int RECORDS = 10;

    private DeadLetters() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> server = Map.of("bootstrap.servers", arguments[0]);
        Map<String, Object> group = Map.of(
                "bootstrap.servers", arguments[0], "group.id", "g", "max.poll.records", 1,
                "share.acknowledgement.mode", "explicit");
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Admin admin = Admin.create(server);
                KafkaProducer<String, String> producer = new KafkaProducer<>(
                        server, new StringSerializer(), new StringSerializer());
                KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(
                        group, new StringDeserializer(), new StringDeserializer())) {
            prepare(admin);
            consumer.subscribe(List.of("orders"));
            for (int record = 0; record < RECORDS; record++) {
                producer.send(new ProducerRecord<>("orders", "order")).get();
            }
            System.out.println("ready");
            while (in.readLine() != null) {
                long before = letters(admin);
                ConsumerRecords<String, String> taken = consumer.poll(Duration.ofSeconds(1));
                while (taken.isEmpty()) {
                    taken = consumer.poll(Duration.ofSeconds(1));
                }
                taken.forEach(record -> consumer.acknowledge(record, AcknowledgeType.REJECT));
                consumer.commitSync(Duration.ofSeconds(10));
                for (int each = 0; each < 24 && letters(admin) == before; each++) {
                    Thread.sleep(250);
                }
                System.out.println(letters(admin));
            }
        }
    }

    private static void prepare(Admin admin) throws Exception {
        Map<String, String> enabled = Map.of("errors.deadletterqueue.group.enable", "true");
        admin.createTopics(List.of(
                        new NewTopic("orders", 1, (short) 1), new NewTopic("other", 1, (short) 1),
                        new NewTopic(LETTERS, 1, (short) 1).configs(enabled)))
                .all()
                .get();
        admin.incrementalAlterConfigs(Map.of(
                        new ConfigResource(ConfigResource.Type.GROUP, "g"),
                        List.of(
                                set("share.auto.offset.reset", "earliest"),
                                set("errors.deadletterqueue.topic.name", LETTERS))))
                .all()
                .get();
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    private static long letters(Admin admin) throws Exception {
        TopicPartition letters = new TopicPartition(LETTERS, 0);
        return admin.listOffsets(Map.of(letters, OffsetSpec.latest()))
                .partitionResult(letters)
                .get()
                .offset();
    }
}
