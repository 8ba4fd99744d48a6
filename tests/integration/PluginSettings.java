import io.strimzi.kafka.quotas.StaticQuotaConfig;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import throttlesidecar.SidecarQuotaCallback;

/**
 * Prints what Strimzi's plugin makes of a properties file, its defaults included: for each of its own
 * properties "name, tab, value", and for what it hands to its admin client "> name, tab, value". Ends
 * with an exception if our quota callback can't use the same file.
 */
public final class PluginSettings {
    public static void main(String[] arguments) throws Exception {
        Properties file = new Properties();
        try (InputStream stream = Files.newInputStream(Path.of(arguments[0]))) {
            file.load(stream);
        }
        Map<String, Object> properties = new HashMap<>();
        file.forEach((name, value) -> properties.put(name.toString(), value));
        StaticQuotaConfig settings = new StaticQuotaConfig(properties, false);
        new TreeMap<>(settings.values())
                .forEach((name, value) -> System.out.println(name + "\t" + value));
        new TreeMap<>(settings.originalsWithPrefix("client.quota.callback.static.kafka.admin."))
                .forEach((name, value) -> System.out.println("> " + name + "\t" + value));
        new SidecarQuotaCallback().validateReconfiguration(properties);
    }
}
