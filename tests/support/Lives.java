import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Producers that live for some seconds each, one after another in several threads, and what became of
 * each life: a JSON object on a line. Ends after the lives that run when its standard input ends.
 *
 * <p>Arguments, all as name=value: {@code topic}, {@code partitions} (how many, written in turn),
 * {@code threads}, {@code seed}, {@code shortest} and {@code longest} (a life, ms), {@code size}
 * (bytes of a value), {@code burst} (records every 100 ms), {@code name} (of the lives); every other
 * name is the producer's own configuration. With a {@code transactional.id}, to which the thread's
 * number is added, each burst is a transaction.
 *
 * <p>A value begins with "life number ", and is filled with zeros: the number counts the records of
 * the life in that partition.
 */
class Lives {
    private static final List<String> OURS =
            List.of(
                    "topic", "partitions", "threads", "seed", "shortest", "longest", "size",
                    "burst", "name");

    private final Map<String, String> ours = new HashMap<>();
    private final Map<String, Object> config = new HashMap<>();
    private volatile boolean ends;

    public static void main(String[] arguments) throws Exception {
        new Lives(arguments).run();
    }

    Lives(String[] arguments) {
        config.put("key.serializer", ByteArraySerializer.class);
        config.put("value.serializer", ByteArraySerializer.class);
        for (String argument : arguments) {
            int split = argument.indexOf('=');
            String name = argument.substring(0, split);
            String value = argument.substring(split + 1);
            if (OURS.contains(name)) {
                ours.put(name, value);
            } else {
                config.put(name, value);
            }
        }
    }

    private int number(String name) {
        return Integer.parseInt(ours.get(name));
    }

    private void run() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int each = 0; each < number("threads"); each++) {
            int thread = each;
            threads.add(new Thread(() -> live(thread)));
            threads.get(each).start();
        }
        say("{\"ready\":true}");
        while (System.in.read() >= 0) {
            // Nothing is said to it.
        }
        ends = true;
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private void live(int thread) {
        Random random = new Random(number("seed") * 1000L + thread);
        for (int life = 0; !ends; life++) {
            String name = ours.get("name") + thread + "-" + life;
            int range = number("longest") - number("shortest") + 1;
            new Life(name, thread, number("shortest") + random.nextInt(range)).run();
        }
    }

    /** One producer, from its first record to its end. */
    private final class Life {
        private final String name;
        private final int thread;
        private final long lengthMs;
        private final long[] sent = new long[number("partitions")];
        private final AtomicLong acknowledged = new AtomicLong();
        private final AtomicLong failed = new AtomicLong();
        private final AtomicReference<String> error = new AtomicReference<>("");

        Life(String name, int thread, long lengthMs) {
            this.name = name;
            this.thread = thread;
            this.lengthMs = lengthMs;
        }

        void run() {
            Map<String, Object> own = new HashMap<>(config);
            own.computeIfPresent("transactional.id", (key, id) -> id + "-" + thread);
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(own)) {
                boolean transactional = own.containsKey("transactional.id");
                if (transactional) {
                    producer.initTransactions();
                }
                long until = System.nanoTime() + lengthMs * 1_000_000;
                while (System.nanoTime() < until && !ends) {
                    if (transactional) {
                        producer.beginTransaction();
                    }
                    for (int record = 0; record < number("burst"); record++) {
                        send(producer, record % sent.length);
                    }
                    if (transactional) {
                        producer.commitTransaction();
                    }
                    Thread.sleep(100);
                }
                producer.flush();
                producer.close(Duration.ofSeconds(280));
            } catch (Exception broken) {
                failed.incrementAndGet();
                error.set(String.valueOf(broken));
            }
            long all = 0;
            for (long each : sent) {
                all += each;
            }
            say(String.format(
                    "{\"life\":\"%s\",\"sent\":%d,\"acknowledged\":%d,\"failed\":%d,\"error\":\"%s\"}",
                    name, all, acknowledged.get(), failed.get(),
                    error.get().replaceAll("[\"\\\\\\p{Cntrl}]", " ")));
        }

        private void send(KafkaProducer<byte[], byte[]> producer, int partition) {
            byte[] head = (name + " " + sent[partition]++ + " ").getBytes(StandardCharsets.US_ASCII);
            byte[] value = ByteBuffer.allocate(number("size")).put(head).array();
            producer.send(
                    new ProducerRecord<>(ours.get("topic"), partition, null, value),
                    (metadata, wrong) -> {
                        if (wrong == null) {
                            acknowledged.incrementAndGet();
                        } else {
                            failed.incrementAndGet();
                            error.compareAndSet("", String.valueOf(wrong));
                        }
                    });
        }
    }
}
