package throttlesidecar;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.quota.ClientQuotaCallback;

/**
 * Kafka's own quota manager, with a callback or without one. It was Scala and became Java, and its
 * parts moved, so it is reached by reflection: the same test then runs on every version.
 */
final class KafkaQuotas implements AutoCloseable {
    private static final String DEFAULT = "<default>";
    private static final boolean IS_JAVA = exists("org.apache.kafka.server.quota.ClientQuotaManager");
    private static final String MANAGER =
            IS_JAVA ? "org.apache.kafka.server.quota.ClientQuotaManager" : "kafka.server.ClientQuotaManager";

    private final Object manager;

    /**
     * A manager as a broker makes it.
     *
     * @param type Produce or Fetch.
     * @param callback null for Kafka's own.
     */
    KafkaQuotas(String type, Metrics metrics, Time time, ClientQuotaCallback callback) {
        try {
            manager = IS_JAVA ? java(type, metrics, time, callback) : scala(type, metrics, time, callback);
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError("Kafka's quota manager is another one", changed);
        }
    }

    private static Object java(String type, Metrics metrics, Time time, ClientQuotaCallback callback)
            throws ReflectiveOperationException {
        Class<?> types = Class.forName("org.apache.kafka.server.quota.QuotaType");
        Object kind = types.getField(type.toUpperCase(java.util.Locale.ROOT)).get(null);
        Optional<Object> plugin = Optional.empty();
        if (callback != null) {
            Class<?> plugins = Class.forName("org.apache.kafka.common.internals.Plugin");
            plugin = Optional.of(
                    plugins.getMethod("wrapInstance", Object.class, Metrics.class, String.class)
                            .invoke(null, callback, metrics, "client.quota.callback.class"));
        }
        return make(config(), metrics, kind, time, "test-", plugin);
    }

    private static Object scala(String type, Metrics metrics, Time time, ClientQuotaCallback callback)
            throws ReflectiveOperationException {
        Object kind = Class.forName("kafka.server.QuotaType$" + type + "$").getField("MODULE$").get(null);
        return make(config(), metrics, kind, time, "test-", option(callback));
    }

    private static Object config() throws ReflectiveOperationException {
        String name = "org.apache.kafka.server.config.ClientQuotaManagerConfig";
        Class<?> config = Class.forName(exists(name) ? name : "kafka.server.ClientQuotaManagerConfig");
        return config.getConstructor(int.class, int.class).newInstance(11, 1);
    }

    private static Object make(Object... arguments) throws ReflectiveOperationException {
        for (Constructor<?> constructor : Class.forName(MANAGER).getConstructors()) {
            if (constructor.getParameterCount() == arguments.length) {
                return constructor.newInstance(arguments);
            }
        }
        throw new NoSuchMethodException(MANAGER);
    }

    /** Sets the quota of an entity, or removes it: null for no such part, "" for the default. */
    void set(String user, String clientId, Double value) {
        Optional<Quota> quota = Optional.ofNullable(value).map(Quota::upperBound);
        try {
            if (IS_JAVA) {
                call("updateQuota", Optional.ofNullable(userPart(user)), Optional.ofNullable(clientPart(clientId)), quota);
            } else {
                Object id = option(clientId == null || clientId.isEmpty() ? null : clientId);
                Object sanitized = option(clientId == null ? null : clientId.isEmpty() ? DEFAULT : Sanitized.of(clientId));
                Object name = option(user == null ? null : user.isEmpty() ? DEFAULT : Sanitized.of(user));
                call("updateQuota", name, id, sanitized, option(quota.orElse(null)));
            }
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError(changed);
        }
    }

    private static Object userPart(String user) throws ReflectiveOperationException {
        return part(user, "DEFAULT_USER_ENTITY", "$UserEntity", user == null ? null : Sanitized.of(user));
    }

    private static Object clientPart(String clientId) throws ReflectiveOperationException {
        return part(clientId, "DEFAULT_USER_CLIENT_ID", "$ClientIdEntity", clientId);
    }

    private static Object part(String name, String ofDefault, String ofName, String value)
            throws ReflectiveOperationException {
        if (name == null) {
            return null;
        }
        if (name.isEmpty()) {
            return Class.forName(MANAGER).getField(ofDefault).get(null);
        }
        return Class.forName(MANAGER + ofName).getConstructor(String.class).newInstance(value);
    }

    /** Whether any quota was ever set, or there is a callback: else nothing is recorded. */
    boolean enabled() {
        try {
            return (Boolean) call("quotasEnabled");
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError(changed);
        }
    }

    /** Records a request; its throttle time, ms. */
    int record(KafkaPrincipal principal, String clientId, double value, long timeMs) {
        String name = "org.apache.kafka.network.Session";
        try {
            Class<?> session = Class.forName(exists(name) ? name : "kafka.network.RequestChannel$Session");
            Object made = session.getConstructor(KafkaPrincipal.class, InetAddress.class)
                    .newInstance(principal, InetAddress.getLoopbackAddress());
            return (Integer) call("recordAndGetThrottleTimeMs", made, clientId, value, timeMs);
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError(changed);
        }
    }

    private Object call(String name, Object... arguments) throws ReflectiveOperationException {
        Method found = Arrays.stream(manager.getClass().getMethods())
                .filter(method -> method.getName().equals(name))
                .filter(method -> method.getParameterCount() == arguments.length)
                .findFirst()
                .orElseThrow(() -> new NoSuchMethodException(name));
        return found.invoke(manager, arguments);
    }

    private static Object option(Object value) throws ReflectiveOperationException {
        return Class.forName("scala.Option").getMethod("apply", Object.class).invoke(null, value);
    }

    private static boolean exists(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException missing) {
            return false;
        }
    }

    @Override
    public void close() {
        try {
            call("shutdown");
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError(changed);
        }
    }
}
