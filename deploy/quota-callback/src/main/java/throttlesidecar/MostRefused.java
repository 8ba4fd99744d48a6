package throttlesidecar;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Map.Entry;

/**
 * The clients of which most requests were refused, in bounded room.
 *
 * <p>By Space-Saving (Metwally, Agrawal, El Abbadi: Efficient computation of frequent and top-k
 * elements in data streams, 2005): a client that is new when the table is full takes the place of the
 * one with the fewest, and its number, which is not counted as its own. So whoever has more than a
 * hundredth of all refusals is there, and what is reported of it is not more than it was: random
 * client-ids push out one another.
 *
 * <p>Example: of two at most, alice was refused 9 times and bob once. Then carol is: she takes bob's
 * place with 2, of which 1 is reported.
 */
final class MostRefused {
    /** Clients counted; some 200 bytes each. */
    static final int MOST = 100;

    /** Clients reported. */
    static final int REPORTED = 10;

    /** Characters of a name that are reported. */
    static final int LONGEST_NAME = 64;

    private final Map<String, Count> counts = new HashMap<>();

    private static final class Count {
        private final long before;
        private long now;

        Count(long before) {
            this.before = before;
            now = before;
        }

        long own() {
            return now - before;
        }
    }

    /**
     * A request was refused.
     *
     * @param clientId may be null or empty.
     */
    synchronized void add(String principal, String clientId) {
        String name = shown(principal) + "/" + shown(clientId);
        Count count = counts.get(name);
        if (count == null) {
            count = new Count(counts.size() < MOST ? 0L : removeLeast());
            counts.put(name, count);
        }
        count.now++;
    }

    private long removeLeast() {
        Entry<String, Count> least = null;
        for (Entry<String, Count> each : counts.entrySet()) {
            if (least == null || each.getValue().now < least.getValue().now) {
                least = each;
            }
        }
        counts.remove(least.getKey());
        return least.getValue().now;
    }

    /** Counts anew. */
    synchronized void clear() {
        counts.clear();
    }

    /** The most first, as {@code alice/etl-1:9,bob/:1}: principal and client-id percent-encoded. */
    @Override
    public synchronized String toString() {
        StringBuilder text = new StringBuilder();
        counts.entrySet().stream()
                .sorted(Comparator.comparingLong((Entry<String, Count> each) -> -each.getValue().own())
                        .thenComparing(Entry::getKey))
                .limit(REPORTED)
                .forEach(each ->
                        text.append(text.length() == 0 ? "" : ",")
                                .append(each.getKey())
                                .append(':')
                                .append(each.getValue().own()));
        return text.toString();
    }

    /** A longer name ends in an ellipsis. */
    private static String shown(String name) {
        if (name == null || name.codePointCount(0, name.length()) <= LONGEST_NAME) {
            return Sanitized.of(name == null ? "" : name);
        }
        return Sanitized.of(name.substring(0, name.offsetByCodePoints(0, LONGEST_NAME - 1)) + "\u2026");
    }
}
