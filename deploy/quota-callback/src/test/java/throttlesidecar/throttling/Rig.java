package throttlesidecar.throttling;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;

/** An enforcement on Kafka's sensors, with settings that a test changes. */
public final class Rig implements OwnLimit {
    public long pauseMaxMs = 4000;
    public long emergencyPauseMaxMs = 300_000;
    public long rampMs = 60_000;
    public double leakBytesPerSecond = Double.NaN;
    public final Set<String> excluded = new HashSet<>();
    public final Map<String, Double> quotas = new HashMap<>();
    public final TagSets tagSets = new TagSets();
    public final Enforcement enforcement;
    public final QuotaSensor sensor;
    public int excludesCalls;

    /** Runs when Kafka asks for a quota, before the quota is computed. */
    public Runnable whenAsked = () -> {};
    private long version;

    public Rig(Clocks clocks) {
        enforcement = new Enforcement(tagSets, this, this::settings, clocks);
        tagSets.enforcement(enforcement);
        sensor = new QuotaSensor(clocks, tagSets, enforcement);
    }

    public void quota(String user, String clientId, Double bytesPerSecond) {
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

    /** The current settings. */
    public Settings settings() {
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
