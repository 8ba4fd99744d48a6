package throttlesidecar.observability;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

/** The clients with the largest counts, in bounded memory. */
class LargestClientsTest {
    private final LargestClients most = new LargestClients(100, 10);

    private void add(int times, String principal, String clientId) {
        for (int each = 0; each < times; each++) {
            most.add(principal, clientId, 1);
        }
    }

    /** The report begins with the largest count; names are encoded for a header. */
    @Test
    void namesClients() {
        assertEquals("", most.toString());
        add(1, "bob", null);
        add(3, "CN=alice, O/1", "a:b");
        add(1, "bob", "");
        add(1, "ann", "app");
        assertEquals("CN%3Dalice%2C%20O%2F1/a%3Ab:3,bob/:2,ann/app:1", most.toString());
        most.clear();
        assertEquals("", most.toString());
    }

    /** Every client with more than a hundredth is reported, and no count is too high. */
    @Test
    void findsWhoIsRefusedMostAmongRandomClientIds() {
        Random random = new Random(16);
        for (int each = 0; each < 10_000; each++) {
            most.add("any", Long.toHexString(random.nextLong()), 1);
            add(each % 10 == 0 ? 1 : 0, "etl", "one");
        }
        String[] found = most.toString().split(",");
        assertEquals(10, found.length);
        assertTrue(found[0].startsWith("etl/one:"), found[0]);
        long count = Long.parseLong(found[0].substring("etl/one:".length()));
        assertTrue(count > 800 && count <= 1000, found[0]);
        assertTrue(found[1].endsWith(":1"), found[1]);
    }

    /** A long name is cut, so that it takes no more memory than a short one. */
    @Test
    void cutsLongNames() {
        add(1, "\ud83d\ude00".repeat(65), "x".repeat(64));
        String name = "%F0%9F%98%80".repeat(63) + "%E2%80%A6";
        assertEquals(name + "/" + "x".repeat(64) + ":1", most.toString());
    }

    /** The length of the report is bounded, however long the names are. */
    @Test
    void isBoundedAsAWhole() {
        LargestClients large = new LargestClients(500, 50);
        for (int each = 0; each < 50; each++) {
            large.add("\ud83d\ude00".repeat(60) + each, "app", 1000 + each);
        }
        String text = large.toString();
        assertTrue(text.length() < LargestClients.LONGEST, text.length() + " characters");
        assertTrue(text.startsWith("%F0"), text);
        assertTrue(text.split(",")[0].endsWith("49/app:1049"), text);
    }
}
