package throttlesidecar.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** A bounded table that keeps the most recently used values. */
class RecentTest {
    private final Recent<String, Integer> recent = new Recent<>(100);

    /** The last fifty used values are always there, and never more than a hundred. */
    @Test
    void keepsWhatWasUsedLast() {
        for (int each = 0; each < 10_000; each++) {
            recent.put("key-" + each, each);
            assertEquals(0, recent.get("key-0"));
            if (each >= 20) {
                assertEquals(each - 20, recent.get("key-" + (each - 20)));
            }
            assertTrue(recent.size() <= 100, recent.size() + " entries");
        }
        assertNull(recent.get("key-1"));
    }

    @Test
    void forgets() {
        recent.put("a", 1);
        assertEquals(1, recent.put("a", 2));
        recent.remove("a");
        assertNull(recent.get("a"));
        assertTrue(recent.isEmpty());
        recent.put("b", 1);
        recent.clear();
        assertTrue(recent.isEmpty());
    }
}
