package throttlesidecar.quotas;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import throttlesidecar.settings.Settings;

/**
 * The differences from Kafka's levels: users with their own tags, static quotas, and the bounded cache.
 */
class OwnTagsTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final ClientQuotaType FETCH = ClientQuotaType.FETCH;
    private Settings settings =
            Settings.of(Map.of("client.quota.callback.sidecar.excluded.principals", "User:root"));
    private final Quotas quotas = new Quotas(() -> settings, true);

    private static ClientQuotaEntity entity(ClientQuotaEntity.ConfigEntityType type, String name) {
        ClientQuotaEntity.ConfigEntity part = new ClientQuotaEntity.ConfigEntity() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public ClientQuotaEntity.ConfigEntityType entityType() {
                return type;
            }
        };
        return () -> List.of(part);
    }

    private static ClientQuotaEntity clientId(String name) {
        return entity(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, name);
    }

    private static ClientQuotaEntity defaultClientId() {
        return entity(ClientQuotaEntity.ConfigEntityType.DEFAULT_CLIENT_ID, "<default>");
    }

    private static ClientQuotaEntity user(String name) {
        return entity(ClientQuotaEntity.ConfigEntityType.USER, name);
    }

    private static Map<String, String> tags(String user, String clientId) {
        return Map.of("user", user, "client-id", clientId);
    }

    @Test
    void anExcludedUserSharesNoProduceTags() {
        quotas.update(FETCH, clientId("other"), 1000.0);
        assertEquals(tags("root", "etl"), quotas.client("root", "etl").tags(PRODUCE));
        assertEquals(tags("", "etl"), quotas.client("root", "etl").tags(FETCH));
        assertEquals(tags("", "etl"), quotas.client("ann", "etl").tags(PRODUCE));
    }

    @Test
    void anExcludedUserHasTheQuotaOfItsLevel() {
        quotas.update(PRODUCE, clientId("etl"), 1000.0);
        assertEquals(1000.0, quotas.limit(PRODUCE, "root", "etl"));
        quotas.update(PRODUCE, user("root"), 500.0);
        assertEquals(tags("root", ""), quotas.client("root", "etl").tags(PRODUCE));
        assertEquals(500.0, quotas.limit(PRODUCE, "root", ""));
    }

    /** If the user has a quota, the user's other clients would share the excluded client's tags. */
    @Test
    void anExcludedClientSharesNoProduceTags() {
        settings = Settings.of(Map.of("client.quota.callback.sidecar.excluded.clients", "ann|etl*"));
        quotas.settingsChanged();
        quotas.update(PRODUCE, user("ann"), 500.0);
        quotas.update(FETCH, clientId("other"), 1000.0);
        assertEquals(tags("ann", "etl-1"), quotas.client("ann", "etl-1").tags(PRODUCE));
        assertEquals(500.0, quotas.limit(PRODUCE, "ann", "etl-1"));
        assertEquals(tags("ann", ""), quotas.client("ann", "web").tags(PRODUCE));
        assertEquals(tags("", "etl-1"), quotas.client("ann", "etl-1").tags(FETCH));
        assertEquals(tags("bob", ""), quotas.client("bob", "etl-1").tags(PRODUCE));
    }

    @Test
    void aUserWithAFactorOfItsOwnSharesNoTagsWhileItHasOne() {
        Quotas.Client before = quotas.client("ann", "etl");
        quotas.throttledUsers(Set.of("ann"));
        assertEquals(tags("ann", "etl"), quotas.client("ann", "etl").tags(PRODUCE));
        quotas.throttledUsers(Set.of());
        assertEquals(before.tags(PRODUCE), quotas.client("ann", "etl").tags(PRODUCE));
    }

    @Test
    void whoNoQuotaNamesSharesTheStaticOne() {
        settings = Settings.of(Map.of("client.quota.callback.static.produce", "1000"));
        quotas.settingsChanged();
        quotas.update(PRODUCE, user("ann"), 500.0);
        assertEquals(tags("ann", ""), quotas.client("ann", "etl").tags(PRODUCE));
        assertEquals(tags("", ""), quotas.client("bob", "web").tags(PRODUCE));
        assertEquals(tags("", ""), quotas.client("eve", "etl").tags(PRODUCE));
        assertEquals(1000.0, quotas.limit(PRODUCE, "", ""));
        assertNull(quotas.limit(FETCH, "", ""));
        quotas.throttledUsers(Set.of("bob"));
        assertEquals(1000.0, quotas.limit(PRODUCE, "bob", "web"));
    }

    @Test
    void whomTheDefaultNamesHasNoPartInTheStaticQuota() {
        settings = Settings.of(Map.of("client.quota.callback.static.produce", "1000"));
        quotas.settingsChanged();
        quotas.update(PRODUCE, defaultClientId(), 700.0);
        assertEquals(tags("", "etl"), quotas.client("ann", "etl").tags(PRODUCE));
        assertEquals(700.0, quotas.limit(PRODUCE, "", "etl"));
    }

    /** Static quotas work as in the Strimzi plugin, and not only for produce requests. */
    @ParameterizedTest
    @EnumSource(names = {"PRODUCE", "FETCH", "REQUEST"})
    void whoIsExcludedHasNoPartInTheStaticQuota(ClientQuotaType type) {
        String name = type.name().toLowerCase(Locale.ROOT);
        settings = Settings.of(
                Map.of(
                        "client.quota.callback.static." + name, "1000",
                        "client.quota.callback.static.excluded.principal.name.list", "User:root"));
        quotas.settingsChanged();
        assertEquals(tags("", ""), quotas.client("ann", "etl").tags(type));
        for (String clientId : List.of("etl", "")) {
            assertEquals(tags("root", clientId), quotas.client("root", clientId).tags(type));
            assertNull(quotas.limit(type, "root", clientId));
        }
        quotas.update(type, user("root"), 500.0);
        assertEquals(tags("root", ""), quotas.client("root", "etl").tags(type));
        assertEquals(500.0, quotas.limit(type, "root", ""));
    }

    /** As in Kafka, a client without a client-id does not have the default client-id's quota. */
    @Test
    void anExcludedUserWithoutAClientIdHasNoDefaultClientIdsQuota() {
        quotas.update(PRODUCE, defaultClientId(), 1000.0);
        assertEquals(1000.0, quotas.limit(PRODUCE, "root", "etl"));
        assertNull(quotas.limit(PRODUCE, "", ""));
        assertNull(quotas.limit(PRODUCE, "root", ""));
    }

    @Test
    void aClientIsResolvedOnceAndAnewAfterAChange() {
        Quotas.Client first = quotas.client("ann", "etl");
        assertSame(first, quotas.client("ann", "etl"));
        quotas.update(FETCH, clientId("web"), 1.0);
        assertNotSame(first, quotas.client("ann", "etl"));
        assertEquals(1, quotas.cached());
    }

    @Test
    void aClientWithoutAClientIdHasAnEmptyOne() {
        assertEquals(tags("", ""), quotas.client("ann", null).tags(PRODUCE));
    }

    /** A client-id may have 32 kB, so many long ones would fill the heap. */
    @Test
    void longClientIdsAreNotCached() {
        String id = "x".repeat(510);
        Map<String, String> tags = quotas.client("ann", id).tags(PRODUCE);
        assertEquals(0, quotas.cached());
        quotas.client("an", id);
        assertEquals(1, quotas.cached());
        quotas.update(PRODUCE, user("ann"), 500.0);
        assertEquals(tags("ann", ""), quotas.client("ann", id).tags(PRODUCE));
        assertEquals(tags("", id), tags);
    }

    /** Clients in use stay in the cache, however many others come. */
    @Test
    void clientsWithRandomIdsDoNotFillTheCache() {
        Quotas.Client used = quotas.client("ann", "used");
        for (int each = 0; each < 3 * Quotas.MOST_CLIENTS; each++) {
            quotas.client("ann", "id-" + each);
            assertSame(used, quotas.client("ann", "used"));
        }
        assertTrue(quotas.cached() <= 2 * Quotas.MOST_CLIENTS, "cached: " + quotas.cached());
    }
}
