import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
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
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
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
 * Runs traces through Kafka's own quota classes. A trace comes on standard input:
 *
 * <pre>
 * rate|mutations|request SAMPLES WINDOW_MS LIMIT
 * WORD AMOUNT NOW_MS       (any number)
 * end
 * </pre>
 *
 * and is answered by one line for each event. "limit" sets a new limit; the other words are in the
 * class of each kind. "mutations" and "request" are of whole seconds.
 */
public final class QuotaTraces {
    private static final SetTime TIME = new SetTime();

    private QuotaTraces() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintWriter out = new PrintWriter(System.out, false, StandardCharsets.UTF_8);
        Managers managers = new Managers();
        Trace trace = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words.length == 4) {
                trace = begin(managers, words);
            } else if (trace == null) {
                throw new IOException("no trace begins with: " + line);
            } else if (words.length == 3) {
                TIME.nowMs = Long.parseLong(words[2]);
                out.println(trace.event(words[0], Double.parseDouble(words[1]), TIME.nowMs));
            } else {
                out.flush();
                trace = null;
            }
        }
        // The managers' threads are still there.
        Runtime.getRuntime().halt(0);
    }

    private static Trace begin(Managers managers, String[] words) throws Exception {
        int samples = Integer.parseInt(words[1]);
        int windowMs = Integer.parseInt(words[2]);
        double limit = Double.parseDouble(words[3]);
        switch (words[0]) {
            case "rate":
                return new RateTrace(samples, windowMs, limit);
            case "mutations":
                return new MutationsTrace(managers, samples, windowMs, limit);
            default:
                return new RequestTrace(managers, samples, windowMs, limit);
        }
    }

    private interface Trace {
        Object event(String word, double amount, long nowMs) throws Exception;
    }

    /** A Rate in a Sensor; throttle times by QuotaUtils. */
    private static final class RateTrace implements Trace {
        private final int samples;
        private final int windowMs;
        private final Sensor sensor;
        private final Rate rate = new Rate();
        private final KafkaMetric metric;

        RateTrace(int samples, int windowMs, double limit) {
            this.samples = samples;
            this.windowMs = windowMs;
            // One registry for each trace: nothing of it is shared.
            Metrics metrics = new Metrics(TIME);
            MetricName name = metrics.metricName("rate", "traces");
            sensor = metrics.sensor("traces");
            sensor.add(name, rate, config(limit));
            metric = metrics.metric(name);
        }

        private MetricConfig config(double limit) {
            return new MetricConfig()
                    .samples(samples)
                    .timeWindow(windowMs, TimeUnit.MILLISECONDS)
                    .quota(Quota.upperBound(limit));
        }

        @Override
        public Object event(String word, double amount, long nowMs) {
            switch (word) {
                case "record":
                    sensor.record(amount, nowMs, false);
                    return "";
                case "checked":
                    return throttleTime(
                            () -> sensor.record(amount, nowMs, true), nowMs, Long.MAX_VALUE);
                case "measure":
                    return rate.measure(metric.config(), nowMs);
                case "window":
                    return rate.windowSize(metric.config(), nowMs);
                case "throttle":
                    return throttleTime(() -> sensor.checkQuotas(nowMs), nowMs, Long.MAX_VALUE);
                case "bounded":
                    return throttleTime(() -> sensor.checkQuotas(nowMs), nowMs, windowMs);
                default:
                    metric.config(config(amount));
                    return "";
            }
        }

        private static long throttleTime(Runnable check, long nowMs, long most) {
            try {
                check.run();
                return 0;
            } catch (QuotaViolationException exceeded) {
                return most == Long.MAX_VALUE
                        ? QuotaUtils.throttleTime(exceeded, nowMs)
                        : QuotaUtils.boundedThrottleTime(exceeded, most, nowMs);
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
        public Object event(String word, double amount, long nowMs) {
            switch (word) {
                case "strict":
                    ControllerMutationQuota strict = manager.newStrictQuotaFor(session, "client");
                    try {
                        strict.record(amount);
                        return "accepted " + strict.throttleTime();
                    } catch (ThrottlingQuotaExceededException exceeded) {
                        return "refused " + exceeded.throttleTimeMs();
                    }
                case "permissive":
                    ControllerMutationQuota permissive =
                            manager.newPermissiveQuotaFor(session, "client");
                    permissive.record(amount);
                    return "accepted " + permissive.throttleTime();
                case "measure":
                    manager.getOrCreateQuotaSensors(session, "client");
                    Map<String, String> tags = new LinkedHashMap<>();
                    tags.put(ClientQuotaManager.USER_TAG, session.sanitizedUser);
                    tags.put(ClientQuotaManager.CLIENT_ID_TAG, "");
                    KafkaMetric tokens = metrics.metric(metrics.metricName(
                            "tokens", QuotaType.CONTROLLER_MUTATION.toString(), "", tags));
                    return tokens.measurable().measure(tokens.config(), nowMs);
                default:
                    setLimit(manager, session, amount);
                    return "";
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
        public Object event(String word, double amount, long nowMs) throws Exception {
            switch (word) {
                case "percent":
                    return percentOf(amount);
                case "record":
                    manager.recordNoThrottle(session, "client", percentOf(amount));
                    return "";
                case "checked":
                    return manager.recordAndGetThrottleTimeMs(
                            session, "client", percentOf(amount), nowMs);
                default:
                    setLimit(manager, session, amount);
                    return "";
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
