import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces with Kafka's own client and prints what became of it ten times a second, a JSON object on
 * a line. Ends when its standard input does, that is with the process that started it.
 *
 * <p>Arguments, all as name=value: {@code topic}, {@code rate} (bytes of values a second, of all
 * connections together), {@code size} (bytes of a value), {@code partitions} ("0,1,2", written in
 * turn), {@code connections} (how many producers), {@code transaction} (milliseconds of a
 * transaction; needs a {@code transactional.id}, to which the producer's number is added); every
 * other name is the producer's own configuration.
 *
 * <p>What could not be sent because the producer's buffer was full is not made up for later. A value
 * begins with "connection transaction record", counted from 0, and is filled with zeros.
 */
class Produce {
    private static final long SAMPLE_MS = 100;
    private static final List<String> OURS =
            List.of("topic", "rate", "size", "partitions", "connections", "transaction");

    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong committed = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicReference<String> lastFailure = new AtomicReference<>("");
    private final Map<String, String> ours = new HashMap<>();
    private final Map<String, Object> config = new HashMap<>();

    Produce(String[] arguments) {
        config.put("key.serializer", ByteArraySerializer.class);
        config.put("value.serializer", ByteArraySerializer.class);
        // A full buffer is waited for; only the delivery's own time-out drops a record.
        config.put("max.block.ms", Integer.MAX_VALUE);
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

    public static void main(String[] arguments) throws Exception {
        Thread end = new Thread(Produce::endWithParent, "end");
        end.setDaemon(true);
        end.start();
        new Produce(arguments).run();
    }

    private static void endWithParent() {
        try {
            while (System.in.read() >= 0) {
                // Nothing is said to it.
            }
        } catch (IOException error) {
            // As good as its end.
        }
        Runtime.getRuntime().halt(0);
    }

    private void run() throws InterruptedException {
        int connections = Integer.parseInt(ours.getOrDefault("connections", "1"));
        List<Metric> throttles = new ArrayList<>();
        for (int number = 0; number < connections; number++) {
            KafkaProducer<byte[], byte[]> producer = producer(number);
            producer.metrics().forEach((name, metric) -> {
                if (name.name().equals("produce-throttle-time-max")) {
                    throttles.add(metric);
                }
            });
            int connection = number;
            Thread thread = new Thread(() -> work(producer, connection, connections));
            thread.setDaemon(true);
            thread.start();
        }
        double longest = 0;
        while (true) {
            for (Metric throttle : throttles) {
                // NaN before the first answer; the comparison is false then.
                double throttleMs = (Double) throttle.metricValue();
                longest = throttleMs > longest ? throttleMs : longest;
            }
            System.out.printf(
                    "{\"at\":%.3f,\"acknowledged_bytes\":%d,\"committed_records\":%d,"
                            + "\"failed_records\":%d,\"last_failure\":\"%s\","
                            + "\"longest_throttle_ms\":%.0f}%n",
                    System.nanoTime() / 1e9, acknowledged.get(), committed.get(), failed.get(),
                    lastFailure.get().replaceAll("[\"\\\\\\p{Cntrl}]", " "), longest);
            System.out.flush();
            Thread.sleep(SAMPLE_MS);
        }
    }

    private KafkaProducer<byte[], byte[]> producer(int number) {
        Map<String, Object> own = new HashMap<>(config);
        own.computeIfPresent("transactional.id", (name, id) -> id + "-" + number);
        return new KafkaProducer<>(own);
    }

    private void work(KafkaProducer<byte[], byte[]> producer, int connection, int connections) {
        try {
            if (config.containsKey("transactional.id")) {
                transactions(producer, connection, connections);
            } else {
                Pace pace = new Pace(connection, connections);
                for (long record = 0; true; record++) {
                    send(producer, pace, connection + " 0 " + record);
                }
            }
        } catch (Exception error) {
            fail(error);
        }
    }

    private void transactions(
            KafkaProducer<byte[], byte[]> producer, int connection, int connections)
            throws InterruptedException {
        long lengthMs = Long.parseLong(ours.getOrDefault("transaction", "500"));
        producer.initTransactions();
        Pace pace = new Pace(connection, connections);
        for (long transaction = 0; true; transaction++) {
            producer.beginTransaction();
            long until = System.nanoTime() + lengthMs * 1_000_000;
            long record = 0;
            while (record == 0 || System.nanoTime() < until) {
                send(producer, pace, connection + " " + transaction + " " + record++);
            }
            producer.commitTransaction();
            committed.addAndGet(record);
        }
    }

    private void send(KafkaProducer<byte[], byte[]> producer, Pace pace, String head)
            throws InterruptedException {
        int partition = pace.next();
        byte[] value = ByteBuffer.allocate(pace.size)
                .put(head.getBytes(StandardCharsets.US_ASCII))
                .array();
        producer.send(new ProducerRecord<>(ours.get("topic"), partition, null, value),
                (metadata, error) -> {
                    if (error == null) {
                        acknowledged.addAndGet(value.length);
                    } else {
                        fail(error);
                    }
                });
        pace.sent();
    }

    private void fail(Exception error) {
        failed.incrementAndGet();
        lastFailure.set(String.valueOf(error));
    }

    /** When one connection sends its next record, and to which partition. */
    private final class Pace {
        final int size = Integer.parseInt(ours.getOrDefault("size", "10000"));
        private final double nanosEach;
        private final int[] partitions;
        private double due;
        private long records;

        Pace(int connection, int connections) {
            double rate = Double.parseDouble(ours.getOrDefault("rate", "Infinity"));
            nanosEach = 1e9 * size * connections / rate;
            String[] numbers = ours.getOrDefault("partitions", "0").split(",");
            partitions = Arrays.stream(numbers).mapToInt(Integer::parseInt).toArray();
            // Not all at once, neither in time nor on one partition.
            due = System.nanoTime() + nanosEach * connection / connections;
            records = connection;
        }

        int next() throws InterruptedException {
            double early = due - System.nanoTime();
            if (early > 0) {
                Thread.sleep((long) (early / 1e6), (int) (early % 1e6));
            }
            return partitions[(int) (records % partitions.length)];
        }

        void sent() {
            records++;
            due += nanosEach;
            // The buffer was full for so long that this is no mere jitter.
            if (System.nanoTime() - due > 100e6) {
                due = System.nanoTime();
            }
        }
    }
}
