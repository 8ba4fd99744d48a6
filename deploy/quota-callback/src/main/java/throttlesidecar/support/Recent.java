package throttlesidecar.support;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A bounded table of the most recently used values. Look-ups take no lock.
 *
 * <p>The table has a young and an old generation. A value that is found in the old generation moves to
 * the young one. When the young generation has {@code most / 2} entries, it becomes the old one, and
 * the former old one is dropped. So the last {@code most / 2} different keys are always there. There
 * are never more than {@code most} entries, except for those that threads put at the same moment.
 *
 * <p>Example: at most 4 entries, and a, b and c are put: {a b} is old, {c} is young. Then a is looked
 * up: {c a} becomes the old generation, and b is gone.
 *
 * @param <K> the keys.
 * @param <V> the values.
 */
public final class Recent<K, V> {
    private final int half;
    private volatile Generations<K, V> now = new Generations<>(new ConcurrentHashMap<>(), Map.of());

    public Recent(int most) {
        half = most / 2;
    }

    private static final class Generations<K, V> {
        private final Map<K, V> young;
        private final Map<K, V> old;

        Generations(Map<K, V> young, Map<K, V> old) {
            this.young = young;
            this.old = old;
        }
    }

    /** The value of a key; null for none. */
    public V get(K key) {
        Generations<K, V> read = now;
        V value = read.young.get(key);
        if (value == null) {
            value = read.old.get(key);
            if (value != null) {
                put(key, value);
            }
        }
        return value;
    }

    /** Sets the value of a key, unless the key has one already, and returns the key's value. */
    public V put(K key, V value) {
        Generations<K, V> read = now;
        V other = read.young.putIfAbsent(key, value);
        if (other == null && read.young.size() >= half) {
            turn(read);
        }
        return other == null ? value : other;
    }

    private synchronized void turn(Generations<K, V> full) {
        if (now == full) {
            now = new Generations<>(new ConcurrentHashMap<>(), full.young);
        }
    }

    public void remove(K key) {
        Generations<K, V> read = now;
        read.young.remove(key);
        if (!read.old.isEmpty()) {
            read.old.remove(key);
        }
    }

    public synchronized void clear() {
        now = new Generations<>(new ConcurrentHashMap<>(), Map.of());
    }

    public boolean isEmpty() {
        Generations<K, V> read = now;
        return read.young.isEmpty() && read.old.isEmpty();
    }

    /** How many entries there are. An entry in both generations counts twice. */
    public int size() {
        Generations<K, V> read = now;
        return read.young.size() + read.old.size();
    }
}
