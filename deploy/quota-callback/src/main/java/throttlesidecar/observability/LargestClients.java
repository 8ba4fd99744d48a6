package throttlesidecar.observability;

import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Map.Entry;
import throttlesidecar.support.Sanitized;

/**
 * The clients with the largest counts of refused requests or bytes, in bounded memory.
 *
 * <p>The algorithm is Space-Saving (Metwally, Agrawal, El Abbadi: Efficient computation of frequent and
 * top-k elements in data streams, 2005). When the table is full, a new client replaces the client with
 * the smallest count and continues from that count, but only the new client's own part is reported. So
 * a table of n clients contains every client with more than 1/n of the total, and no report is too
 * high. Clients with random client-ids only replace each other.
 *
 * <p>Example: a table of two has alice with 9 refusals and bob with 1. Carol is refused: she replaces
 * bob with the count 2, of which 1 is reported.
 */
public final class LargestClients {
    /** The most characters of a name in the report. */
    static final int LONGEST_NAME = 64;

    /** The most characters of the report, which is sent in a header. */
    static final int LONGEST = 8_000;

    private final int most;
    private final int reported;
    private final Map<String, Count> counts = new HashMap<>();

    /**
     * An empty table.
     *
     * @param most how many clients are counted; each takes about 200 bytes.
     * @param reported how many clients are reported.
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
     * Adds to a client's count.
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
        Entry<String, Count> least = Collections.min(
                counts.entrySet(), Comparator.comparingLong(each -> each.getValue().now));
        counts.remove(least.getKey());
        return least.getValue().now;
    }

    public synchronized void clear() {
        counts.clear();
    }

    /** The report, largest first, as in {@code alice/etl-1:9,bob/:1}; names are percent-encoded. */
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

    /** A name that fits a log line or a header: percent-encoded, and a longer one ends in an ellipsis. */
    public static String shown(String name) {
        if (name == null || name.codePointCount(0, name.length()) <= LONGEST_NAME) {
            return Sanitized.of(name == null ? "" : name);
        }
        return Sanitized.of(name.substring(0, name.offsetByCodePoints(0, LONGEST_NAME - 1)) + "\u2026");
    }
}
