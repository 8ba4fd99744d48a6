import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import kafka.server.ClientRequestQuotaManager;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * Runs traces through Kafka's own quota classes. A trace comes on standard input, little-endian:
 *
 * <pre>
 * kind (byte), samples, window in ms, events (int each), limit (double)
 * what is done (a byte for each event), with how much (a double each), at which ms (a long each)
 * </pre>
 *
 * and is answered by what the events gave: how many doubles and how many longs (int each), then
 * those doubles, then those longs, each in the order of the events. "l" sets a new limit; the other
 * events are in the class of each kind. Kinds "m" and "q" are of whole seconds.
 */
public final class QuotaTraces {
    private static final SetTime TIME = new SetTime();
    private static final int HEADER_BYTES = 3 * Integer.BYTES + Double.BYTES;
    private static final int EVENT_BYTES = 1 + Double.BYTES + Long.BYTES;

    private QuotaTraces() {}

    public static void main(String[] arguments) {
        int status = 0;
        try {
            answer(new DataInputStream(new BufferedInputStream(System.in)));
        } catch (Exception exception) {
            exception.printStackTrace();
            status = 1;
        }
        // The managers' threads are still there.
        Runtime.getRuntime().halt(status);
    }

    private static void answer(DataInputStream in) throws Exception {
        OutputStream out = new FileOutputStream(FileDescriptor.out);
        Managers managers = new Managers();
        for (int kind = in.read(); kind >= 0; kind = in.read()) {
            ByteBuffer header = next(in, HEADER_BYTES);
            int samples = header.getInt();
            int windowMs = header.getInt();
            int events = header.getInt();
            Trace trace = begin((char) kind, managers, samples, windowMs, header.getDouble());
            ByteBuffer columns = next(in, events * EVENT_BYTES);
            Answers answers = new Answers(events);
            for (int i = 0; i < events; i++) {
                char word = (char) columns.get(i);
                double amount = columns.getDouble(events + i * Double.BYTES);
                TIME.nowMs = columns.getLong(events + (events + i) * Double.BYTES);
                trace.event(word, amount, TIME.nowMs, answers);
            }
            out.write(answers.bytes());
        }
    }

    private static ByteBuffer next(DataInputStream in, int bytes) throws IOException {
        byte[] read = new byte[bytes];
        in.readFully(read);
        return ByteBuffer.wrap(read).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static Trace begin(
            char kind, Managers managers, int samples, int windowMs, double limit)
            throws Exception {
        switch (kind) {
            case 'r':
                return new StatTrace(new Rate(), samples, windowMs, limit);
            case 't':
                return new StatTrace(new TokenBucket(), samples, windowMs, limit);
            case 'm':
                return new MutationsTrace(managers, samples, windowMs, limit);
            case 'q':
                return new RequestTrace(managers, samples, windowMs, limit);
            default:
                throw new IOException("no kind of trace: " + kind);
        }
    }

    private interface Trace {
        void event(char word, double amount, long nowMs, Answers answers) throws Exception;
    }

    private static final class Answers {
        private final ByteBuffer doubles;
        private final ByteBuffer longs;

        Answers(int events) {
            doubles = ByteBuffer.allocate(events * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            // An admission is two.
            longs = ByteBuffer.allocate(2 * events * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        }

        void add(double answer) {
            doubles.putDouble(answer);
        }

        void add(long answer) {
            longs.putLong(answer);
        }

        byte[] bytes() {
            doubles.flip();
            longs.flip();
            return ByteBuffer.allocate(2 * Integer.BYTES + doubles.limit() + longs.limit())
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(doubles.limit() / Double.BYTES)
                    .putInt(longs.limit() / Long.BYTES)
                    .put(doubles)
                    .put(longs)
                    .array();
        }
    }

    /** A Rate or a TokenBucket in a Sensor; throttle times as the managers compute them. */
    private static final class StatTrace implements Trace {
        private final MeasurableStat stat;
        private final int samples;
        private final int windowMs;
        private final Sensor sensor;
        private final KafkaMetric metric;

        StatTrace(MeasurableStat stat, int samples, int windowMs, double limit) {
            this.stat = stat;
            this.samples = samples;
            this.windowMs = windowMs;
            // One registry for each trace: nothing of it is shared.
            Metrics metrics = new Metrics(TIME);
            MetricName name = metrics.metricName("stat", "traces");
            sensor = metrics.sensor("traces");
            sensor.add(name, stat, config(limit));
            metric = metrics.metric(name);
        }

        private MetricConfig config(double limit) {
            return new MetricConfig()
                    .samples(samples)
                    .timeWindow(windowMs, TimeUnit.MILLISECONDS)
                    .quota(Quota.upperBound(limit));
        }

        @Override
        public void event(char word, double amount, long nowMs, Answers answers) {
            switch (word) {
                case 'r':
                    sensor.record(amount, nowMs, false);
                    break;
                case 'c':
                    answers.add(throttleMs(() -> sensor.record(amount, nowMs, true), nowMs));
                    break;
                case 't':
                    answers.add(throttleMs(() -> sensor.checkQuotas(nowMs), nowMs));
                    break;
                case 'b':
                    answers.add(boundedMs(() -> sensor.checkQuotas(nowMs), nowMs));
                    break;
                case 'm':
                    answers.add(stat.measure(metric.config(), nowMs));
                    break;
                case 'w':
                    answers.add(((Rate) stat).windowSize(metric.config(), nowMs));
                    break;
                default:
                    metric.config(config(amount));
            }
        }

        private long throttleMs(Runnable check, long nowMs) {
            try {
                check.run();
                return 0;
            } catch (QuotaViolationException exceeded) {
                return stat instanceof Rate
                        ? QuotaUtils.throttleTime(exceeded, nowMs)
                        : ControllerMutationQuotaManager.throttleTimeMs(exceeded);
            }
        }

        private long boundedMs(Runnable check, long nowMs) {
            try {
                check.run();
                return 0;
            } catch (QuotaViolationException exceeded) {
                return QuotaUtils.boundedThrottleTime(exceeded, windowMs, nowMs);
            }
        }
    }

    /** A user of the real ControllerMutationQuotaManager. */
    private static final class MutationsTrace implements Trace {
        private final ControllerMutationQuotaManager manager;
        private final Metrics metrics;
        private final Session session;

        MutationsTrace(Managers managers, int samples, int windowMs, double limit)
                throws IOException {
            manager = managers.mutations(samples, windowMs);
            metrics = managers.metrics.get(manager);
            session = managers.newUser();
            setLimit(manager, session, limit);
        }

        @Override
        public void event(char word, double amount, long nowMs, Answers answers) {
            switch (word) {
                case 's':
                    ControllerMutationQuota strict = manager.newStrictQuotaFor(session, "client");
                    try {
                        strict.record(amount);
                        answers.add(1L);
                        answers.add((long) strict.throttleTime());
                    } catch (ThrottlingQuotaExceededException exceeded) {
                        answers.add(0L);
                        answers.add((long) exceeded.throttleTimeMs());
                    }
                    break;
                case 'p':
                    ControllerMutationQuota permissive =
                            manager.newPermissiveQuotaFor(session, "client");
                    permissive.record(amount);
                    answers.add(1L);
                    answers.add((long) permissive.throttleTime());
                    break;
                case 'm':
                    manager.getOrCreateQuotaSensors(session, "client");
                    Map<String, String> tags = new LinkedHashMap<>();
                    tags.put(ClientQuotaManager.USER_TAG, session.sanitizedUser);
                    tags.put(ClientQuotaManager.CLIENT_ID_TAG, "");
                    KafkaMetric tokens = metrics.metric(metrics.metricName(
                            "tokens", QuotaType.CONTROLLER_MUTATION.toString(), "", tags));
                    answers.add(tokens.measurable().measure(tokens.config(), nowMs));
                    break;
                default:
                    setLimit(manager, session, amount);
            }
        }
    }

    /** A user of the real ClientRequestQuotaManager; amounts are nanoseconds of thread time. */
    private static final class RequestTrace implements Trace {
        private final ClientRequestQuotaManager manager;
        private final Session session;
        private final Method percent;

        RequestTrace(Managers managers, int samples, int windowMs, double limit)
                throws IOException, NoSuchMethodException {
            manager = managers.request(samples, windowMs);
            session = managers.newUser();
            percent = ClientRequestQuotaManager.class.getDeclaredMethod(
                    "nanosToPercentage", long.class);
            percent.setAccessible(true);
            setLimit(manager, session, limit);
        }

        @Override
        public void event(char word, double amount, long nowMs, Answers answers)
                throws ReflectiveOperationException {
            switch (word) {
                case '%':
                    answers.add(percentOf(amount));
                    break;
                case 'r':
                    manager.recordNoThrottle(session, "client", percentOf(amount));
                    break;
                case 'c':
                    answers.add((long) manager.recordAndGetThrottleTimeMs(
                            session, "client", percentOf(amount), nowMs));
                    break;
                default:
                    setLimit(manager, session, amount);
            }
        }

        private double percentOf(double nanos) throws ReflectiveOperationException {
            return (double) percent.invoke(manager, (long) nanos);
        }
    }

    private static void setLimit(ClientQuotaManager manager, Session session, double limit) {
        manager.updateQuota(
                Optional.of(new ClientQuotaManager.UserEntity(session.sanitizedUser)),
                Optional.empty(),
                Optional.of(Quota.upperBound(limit)));
    }

    /** One manager for each window: each has a thread that takes a second to end. */
    private static final class Managers {
        private final Map<String, ClientQuotaManager> made = new HashMap<>();
        private final Map<ClientQuotaManager, Metrics> metrics = new HashMap<>();
        private int users = 0;

        Session newUser() throws IOException {
            users++;
            return new Session(
                    new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "user" + users),
                    InetAddress.getLoopbackAddress());
        }

        ControllerMutationQuotaManager mutations(int samples, int windowMs) {
            Metrics registry = new Metrics(TIME);
            return (ControllerMutationQuotaManager) one(
                    "mutations " + samples + " " + windowMs, registry,
                    () -> new ControllerMutationQuotaManager(
                            config(samples, windowMs), registry, TIME, "", Optional.empty()));
        }

        ClientRequestQuotaManager request(int samples, int windowMs) {
            Metrics registry = new Metrics(TIME);
            return (ClientRequestQuotaManager) one(
                    "request " + samples + " " + windowMs, registry,
                    () -> new ClientRequestQuotaManager(
                            config(samples, windowMs), registry, TIME, "", Optional.empty()));
        }

        private ClientQuotaManager one(
                String key, Metrics registry, Supplier<ClientQuotaManager> maker) {
            return made.computeIfAbsent(key, absent -> {
                ClientQuotaManager manager = maker.get();
                metrics.put(manager, registry);
                return manager;
            });
        }

        private static ClientQuotaManagerConfig config(int samples, int windowMs) {
            return new ClientQuotaManagerConfig(samples, windowMs / 1000);
        }
    }

    /** Time that is set. */
    private static final class SetTime implements Time {
        // The managers' threads look at it too.
        private volatile long nowMs = 0;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(nowMs);
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException("nothing sleeps here");
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException("nothing waits here");
        }
    }
}
