package throttlesidecar;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import throttlesidecar.decision.Factors;
import throttlesidecar.observability.Journal;
import throttlesidecar.observability.Lines;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.TagSets;

/** The parts of the callback in a broker, without the connection to the sidecar. */
public final class LoneRuntime {
    private final CallbackRuntime runtime;

    /** A runtime with its own tag sets, for tests in other packages. */
    public LoneRuntime(Settings settings, Clocks clocks) {
        runtime = of(settings, clocks);
    }

    public TagSets tagSets() {
        return runtime.tagSets;
    }

    public Enforcement enforcement() {
        return runtime.enforcement;
    }

    public void enforce(Factors factors) {
        runtime.enforce(factors);
    }

    /** Kafka's own quota manager with the callback. */
    public KafkaQuotas quotas(Metrics metrics, Time time) {
        return new KafkaQuotas("Produce", metrics, time, new SidecarQuotaCallback(runtime));
    }

    /** A runtime with its own tag sets. */
    static CallbackRuntime of(Settings settings, Clocks clocks) {
        return of(settings, new Connections(1), RefusalLog.ofBroker(), clocks, new Lines());
    }

    static CallbackRuntime of(
            Settings settings, Connections connections, RefusalLog log, Clocks clocks,
            Journal journal) {
        TagSets tagSets = new TagSets();
        CallbackRuntime runtime =
                new CallbackRuntime(settings, 1, tagSets, connections, log, () -> null, clocks, journal);
        tagSets.enforcement(runtime.enforcement);
        connections.refusals(runtime.refusals);
        return runtime;
    }

    /** Kafka's metrics with our reporter, which fills the tag sets. */
    public static Metrics metrics(TagSets tagSets, Clocks clocks) {
        return new Metrics(
                new MetricConfig(), new ArrayList<>(List.of(new SidecarMetricsReporter(tagSets))),
                MovedClocks.time(clocks));
    }

    /** Kafka's own quota manager of produce requests, with the callback of a runtime. */
    static KafkaQuotas kafka(CallbackRuntime runtime, Clocks clocks) {
        return new KafkaQuotas(
                "Produce", metrics(runtime.tagSets, clocks), MovedClocks.time(clocks),
                new SidecarQuotaCallback(runtime));
    }
}
