package throttlesidecar.support;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Values by key, of which the most recently used are kept: a bounded table without locks on its
 * look-ups.
 *
 * <p>There are two generations. A value is found in the young one, or in the old one, and then is
 * young again. When the young one has half of the most entries it becomes the old one, and the old
 * one is dropped. So what was used among the last {@code most / 2} different keys is always there,
 * and never are there more than {@code most}, but for what threads put at the same moment.
 *
 * <p>Example: of 4 at most, a b c are put: {a b} is old, {c} is young. With a, which is found, {c a}
 * becomes the old one, and b is gone.
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

    /** The value of a key, which has this one from now on unless it had another. */
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

    /** Forgets a key. */
    public void remove(K key) {
        Generations<K, V> read = now;
        read.young.remove(key);
        if (!read.old.isEmpty()) {
            read.old.remove(key);
        }
    }

    /** Forgets all. */
    public synchronized void clear() {
        now = new Generations<>(new ConcurrentHashMap<>(), Map.of());
    }

    /** Whether there are none. */
    public boolean isEmpty() {
        Generations<K, V> read = now;
        return read.young.isEmpty() && read.old.isEmpty();
    }

    /** How many there are; one that is young again counts twice until its old generation goes. */
    public int size() {
        Generations<K, V> read = now;
        return read.young.size() + read.old.size();
    }
}
