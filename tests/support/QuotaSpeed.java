import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * How many decisions a second Kafka's own quota classes make, a line of "NAME PER_SECOND" a round.
 *
 * <p>Arguments: rounds, seconds of each, and the trace: samples, window in ms, limit, amount, and
 * the milliseconds between decisions.
 */
public final class QuotaSpeed {
    private static final int CHECKED_EVERY = 1000;

    private QuotaSpeed() {}

    public static void main(String[] arguments) {
        int rounds = Integer.parseInt(arguments[0]);
        double roundS = Double.parseDouble(arguments[1]);
        MetricConfig config = new MetricConfig()
                .samples(Integer.parseInt(arguments[2]))
                .timeWindow(Long.parseLong(arguments[3]), TimeUnit.MILLISECONDS)
                .quota(Quota.upperBound(Double.parseDouble(arguments[4])));
        double amount = Double.parseDouble(arguments[5]);
        long gapMs = Long.parseLong(arguments[6]);
        Map<String, MeasurableStat> stats =
                Map.of("sampled rate", new Rate(), "token bucket", new TokenBucket());
        for (Map.Entry<String, MeasurableStat> stat : stats.entrySet()) {
            Subject subject = new Subject(stat.getValue(), config);
            // The first one is the compiler's.
            for (int round = 0; round <= rounds; round++) {
                double perSecond = subject.run(roundS, amount, gapMs);
                if (round > 0) {
                    System.out.println(stat.getKey() + " " + perSecond);
                }
            }
        }
    }

    private static final class Subject {
        private final Sensor sensor;
        private final boolean strict;
        private long nowMs = 1_700_000_000_000L;
        private long throttledMs = 0;

        Subject(MeasurableStat stat, MetricConfig config) {
            Metrics metrics = new Metrics();
            MetricName name = metrics.metricName("subject", "speed");
            sensor = metrics.sensor("speed");
            sensor.add(name, stat, config);
            strict = stat instanceof TokenBucket;
        }

        double run(double roundS, double amount, long gapMs) {
            long decisions = 0;
            long began = System.nanoTime();
            long lastsNanos = (long) (roundS * 1e9);
            while (System.nanoTime() - began < lastsNanos) {
                for (int i = 0; i < CHECKED_EVERY; i++) {
                    nowMs += gapMs;
                    throttledMs += strict ? admit(amount) : record(amount);
                }
                decisions += CHECKED_EVERY;
            }
            double perSecond = decisions / ((System.nanoTime() - began) / 1e9);
            if (throttledMs == 0) {
                throw new IllegalStateException("nobody was throttled: this measures half of it");
            }
            return perSecond;
        }

        /** As ClientQuotaManager does: count, then check. */
        private long record(double amount) {
            try {
                sensor.record(amount, nowMs, true);
                return 0;
            } catch (QuotaViolationException exceeded) {
                return QuotaUtils.throttleTime(exceeded, nowMs);
            }
        }

        /** As ControllerMutationQuotaManager does for new clients: check, then count. */
        private long admit(double amount) {
            try {
                synchronized (sensor) {
                    sensor.checkQuotas(nowMs);
                    sensor.record(amount, nowMs, false);
                }
                return 0;
            } catch (QuotaViolationException exceeded) {
                return ControllerMutationQuotaManager.throttleTimeMs(exceeded);
            }
        }
    }
}
