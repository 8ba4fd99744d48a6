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
import throttlesidecar.support.Sanitized;

/**
 * Kafka's own quota manager, with or without a callback. The class was rewritten from Scala to Java, and
 * its parts moved. So it is called by reflection, and the same test runs on every version.
 */
public final class KafkaQuotas implements AutoCloseable {
    private static final String DEFAULT = "<default>";
    private static final String JAVA = "org.apache.kafka.server.quota.ClientQuotaManager";
    private static final String SCALA = "kafka.server.ClientQuotaManager";
    private static final String MANAGER = exists(JAVA) ? JAVA : SCALA;

    private final Object manager;

    /**
     * Makes a manager as a broker does.
     *
     * @param type Produce, Fetch, Request or ControllerMutation.
     * @param callback null for Kafka's own.
     */
    KafkaQuotas(String type, Metrics metrics, Time time, ClientQuotaCallback callback) {
        try {
            Constructor<?> made =
                    Arrays.stream(Class.forName(MANAGER).getConstructors())
                            .filter(constructor -> constructor.getParameterCount() == 6)
                            .findFirst()
                            .orElseThrow(() -> new NoSuchMethodException(MANAGER));
            Object plugin = callback;
            // From 4.1 on.
            boolean wrapped = made.getGenericParameterTypes()[5].getTypeName().contains("Plugin");
            if (plugin != null && wrapped) {
                plugin = Class.forName("org.apache.kafka.common.internals.Plugin")
                        .getMethod("wrapInstance", Object.class, Metrics.class, String.class)
                        .invoke(null, callback, metrics, "client.quota.callback.class");
            }
            Object optional = optional(made.getParameterTypes()[5], plugin);
            manager = made.newInstance(config(), metrics, kind(type), time, "test-", optional);
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError("this version of Kafka has another quota manager", changed);
        }
    }

    private static Object kind(String type) throws ReflectiveOperationException {
        String name = "org.apache.kafka.server.quota.QuotaType";
        if (!exists(name)) {
            return constant("kafka.server.QuotaType$" + type + "$", "MODULE$");
        }
        return Arrays.stream(Class.forName(name).getEnumConstants())
                .filter(kind -> kind.toString().equals(type))
                .findFirst()
                .orElseThrow(() -> new NoSuchFieldException(type));
    }

    private static Object config() throws ReflectiveOperationException {
        String name = "org.apache.kafka.server.config.ClientQuotaManagerConfig";
        Class<?> config = Class.forName(exists(name) ? name : "kafka.server.ClientQuotaManagerConfig");
        return config.getConstructor(int.class, int.class).newInstance(11, 1);
    }

    /** Sets or removes the quota of an entity. A part is null if absent, and "" for the default. */
    public void set(String user, String clientId, Double value) {
        Quota quota = value == null ? null : Quota.upperBound(value);
        try {
            Method update = method("updateQuota");
            Object[] arguments = update.getParameterCount() == 4
                    ? new Object[] {
                        name(user),
                        clientId == null || clientId.isEmpty() ? null : clientId,
                        name(clientId),
                        quota,
                    }
                    : new Object[] {userPart(user), clientPart(clientId), quota};
            for (int each = 0; each < arguments.length; each++) {
                arguments[each] = optional(update.getParameterTypes()[each], arguments[each]);
            }
            update.invoke(manager, arguments);
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError(changed);
        }
    }

    private static String name(String name) {
        return name == null ? null : name.isEmpty() ? DEFAULT : Sanitized.of(name);
    }

    private static Object userPart(String user) throws ReflectiveOperationException {
        if (user != null && user.isEmpty()) {
            return MANAGER.equals(JAVA)
                    ? constant(JAVA, "DEFAULT_USER_ENTITY")
                    : constant(SCALA + "$DefaultUserEntity$", "MODULE$");
        }
        return user == null ? null : part("$UserEntity", Sanitized.of(user));
    }

    private static Object clientPart(String clientId) throws ReflectiveOperationException {
        if (clientId != null && clientId.isEmpty()) {
            return MANAGER.equals(JAVA)
                    ? constant(JAVA, "DEFAULT_USER_CLIENT_ID")
                    : constant(SCALA + "$DefaultClientIdEntity$", "MODULE$");
        }
        return clientId == null ? null : part("$ClientIdEntity", clientId);
    }

    private static Object part(String kind, String name) throws ReflectiveOperationException {
        return Class.forName(MANAGER + kind).getConstructor(String.class).newInstance(name);
    }

    private static Object constant(String type, String name) throws ReflectiveOperationException {
        return Class.forName(type).getField(name).get(null);
    }

    /** Whether there is a callback, or a quota was set before. Otherwise Kafka records nothing. */
    boolean enabled() {
        try {
            return (Boolean) call("quotasEnabled");
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError(changed);
        }
    }

    /** Records a request and returns its throttle time, ms. */
    public int record(KafkaPrincipal principal, String clientId, double value, long timeMs) {
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

    private Method method(String name) throws NoSuchMethodException {
        return Arrays.stream(manager.getClass().getMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow(() -> new NoSuchMethodException(name));
    }

    private Object call(String name, Object... arguments) throws ReflectiveOperationException {
        return method(name).invoke(manager, arguments);
    }

    /** An Option of Java or Scala, by the parameter's type; empty for null. */
    private static Object optional(Class<?> type, Object value)
            throws ReflectiveOperationException {
        return type == Optional.class
                ? Optional.ofNullable(value)
                : type.getMethod("apply", Object.class).invoke(null, value);
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
