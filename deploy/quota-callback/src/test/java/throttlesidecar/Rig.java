package throttlesidecar;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** An enforcement on Kafka's sensors, with settings that a test changes. */
final class Rig implements OwnLimit {
    long pauseMaxMs = 4000;
    long emergencyPauseMaxMs = 300_000;
    long rampMs = 60_000;
    double leakBytesPerSecond = Double.NaN;
    final Set<String> excluded = new HashSet<>();
    final Map<String, Double> quotas = new HashMap<>();
    final TagSets tagSets = new TagSets();
    final Enforcement enforcement;
    final QuotaSensor sensor;
    int excludesCalls;

    /** Runs when a quota was requested, before it is computed. */
    Runnable whenAsked = () -> {};
    private long version;

    Rig(Moments moments) {
        enforcement = new Enforcement(tagSets, this, this::settings, moments);
        tagSets.enforcement(enforcement);
        sensor = new QuotaSensor(moments, tagSets, enforcement);
    }

    void quota(String user, String clientId, Double bytesPerSecond) {
        quotas.put(user + ":" + clientId, bytesPerSecond);
        version++;
    }

    @Override
    public Double of(String user, String clientId) {
        return quotas.get(user + ":" + clientId);
    }

    @Override
    public long version() {
        whenAsked.run();
        return version;
    }

    /** The settings of now. */
    Settings settings() {
        Map<String, Object> configs = new HashMap<>();
        configs.put(Settings.PAUSE_MAX, pauseMaxMs);
        configs.put(Settings.EMERGENCY_PAUSE_MAX, emergencyPauseMaxMs);
        configs.put(Settings.RAMP, rampMs);
        configs.put(Settings.EXCLUDED, String.join(";", excluded));
        if (!Double.isNaN(leakBytesPerSecond)) {
            configs.put(Settings.LEAK_BYTES, leakBytesPerSecond);
        }
        return Settings.of(configs)
                .alsoExcluding(
                        (user, clientId) -> {
                            excludesCalls++;
                            return false;
                        });
    }
}
