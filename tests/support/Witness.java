import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;

/** Runs in a broker as a metrics reporter; its MBean has the broker's configuration. */
public class Witness implements MetricsReporter {
    /** The attributes that the MBean has. */
    public interface WitnessMBean {
        /** The broker's property "witness.of". */
        String getOf();
    }

    @Override
    public void configure(Map<String, ?> configs) {
        WitnessMBean bean = () -> String.valueOf(configs.get("witness.of"));
        try {
            ManagementFactory.getPlatformMBeanServer().registerMBean(
                    new StandardMBean(bean, WitnessMBean.class), new ObjectName("test:type=Witness"));
        } catch (JMException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
