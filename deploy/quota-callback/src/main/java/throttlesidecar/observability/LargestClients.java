package throttlesidecar.observability;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map.Entry;
import java.util.Map;
import throttlesidecar.support.Sanitized;

/**
 * The clients with most of something, refused requests or bytes, in bounded room.
 *
 * <p>By Space-Saving (Metwally, Agrawal, El Abbadi: Efficient computation of frequent and top-k
 * elements in data streams, 2005): a client that is new when the table is full takes the place of the
 * one with the least, and its number, which is not counted as its own. So whoever has more than the
 * most clients' share of all is there, and what is reported of it is not more than it has: random
 * client-ids push out one another.
 *
 * <p>Example: of two at most, alice was refused 9 times and bob once. Then carol is: she takes bob's
 * place with 2, of which 1 is reported.
 */
public final class LargestClients {
    /** Characters of a name that are reported. */
    static final int LONGEST_NAME = 64;

    /** Characters of all that is reported: it is sent in a header. */
    static final int LONGEST = 8_000;

    private final int most;
    private final int reported;
    private final Map<String, Count> counts = new HashMap<>();

    /**
     * None at first.
     *
     * @param most clients counted; some 200 bytes each.
     * @param reported clients reported.
     */
    public LargestClients(int most, int reported) {
        this.most = most;
        this.reported = reported;
    }

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
     * A client has so much more.
     *
     * @param clientId may be null or empty.
     */
    public synchronized void add(String principal, String clientId, long more) {
        String name = shown(principal) + "/" + shown(clientId);
        Count count = counts.get(name);
        if (count == null) {
            count = new Count(counts.size() < most ? 0L : removeLeast());
            counts.put(name, count);
        }
        count.now += more;
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
    public synchronized void clear() {
        counts.clear();
    }

    /** The most first, as {@code alice/etl-1:9,bob/:1}: principal and client-id percent-encoded. */
    @Override
    public synchronized String toString() {
        StringBuilder text = new StringBuilder();
        counts.entrySet().stream()
                .sorted(Comparator.comparingLong((Entry<String, Count> each) -> -each.getValue().own())
                        .thenComparing(Entry::getKey))
                .limit(reported)
                .map(each -> each.getKey() + ':' + each.getValue().own())
                .takeWhile(each -> text.length() + each.length() < LONGEST)
                .forEach(each -> text.append(text.length() == 0 ? "" : ",").append(each));
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
