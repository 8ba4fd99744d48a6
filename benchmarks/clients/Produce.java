import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Appends numbered records with Kafka's own client, as it is.
 *
 * <p>Its command line and its output are those of every program here ({@code __init__.py}).
 */
class Produce {
    private static final Set<String> OURS =
            Set.of("client", "bootstrap", "topic", "partitions", "rate", "size");
    private static volatile boolean stopped;

    public static void main(String[] words) throws Exception {
        Map<String, String> ours = new TreeMap<>();
        Map<String, Object> config = new HashMap<>();
        for (String word : words) {
            String[] parts = word.split("=", 2);
            if (OURS.contains(parts[0])) {
                ours.put(parts[0], parts[1]);
            } else {
                config.put(parts[0], parts[1]);
            }
        }
        config.put("bootstrap.servers", ours.get("bootstrap"));
        config.put("client.id", ours.get("topic"));
        config.put("key.serializer", ByteArraySerializer.class);
        config.put("value.serializer", ByteArraySerializer.class);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config);
        Thread thread = new Thread(() -> produce(producer, ours), "produce");
        thread.setDaemon(true);
        thread.start();
        while (System.in.read() >= 0) {
            // Nothing is said to it.
        }
        stopped = true;
        Thread.sleep(60_000); // What is under way is reported.
        Runtime.getRuntime().halt(0);
    }

    private static void produce(KafkaProducer<byte[], byte[]> producer, Map<String, String> ours) {
        int size = Integer.parseInt(ours.get("size"));
        int partitions = Integer.parseInt(ours.get("partitions"));
        long each = (long) (1e9 * size / Double.parseDouble(ours.get("rate")));
        SplittableRandom random = new SplittableRandom();
        long due = System.nanoTime();
        for (int next = 0; !stopped; next++) {
            sleep((due - System.nanoTime()) / 1_000_000);
            int number = next;
            byte[] value = new byte[size];
            random.nextBytes(value);
            byte[] head = (number + " ").getBytes(StandardCharsets.US_ASCII);
            System.arraycopy(head, 0, value, 0, head.length);
            report("sent", number, null);
            producer.send(
                    new ProducerRecord<>(ours.get("topic"), number % partitions, null, value),
                    (metadata, error) ->
                            report(error == null ? "acknowledged" : "failed", number, error));
            due += each;
            if (System.nanoTime() - due > 100_000_000) {
                due = System.nanoTime(); // It was blocked: that is not made up for.
            }
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(Math.max(0, ms));
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    private static synchronized void report(String what, int number, Exception error) {
        String failure = error == null
                ? ""
                : ",\"error\":\"" + String.valueOf(error).replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"";
        System.out.printf(Locale.ROOT, "{\"at\":%.3f,\"%s\":%d%s}%n",
                System.currentTimeMillis() / 1e3, what, number, failure);
    }
}
