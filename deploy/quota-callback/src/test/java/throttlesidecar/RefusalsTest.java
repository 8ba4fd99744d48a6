package throttlesidecar;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Journal;
import throttlesidecar.observability.Lines;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.ExcludedWriters;
import throttlesidecar.refusal.Mute;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.refusal.RefusedException;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.support.RunningTime;

/**
 * Which connections are refused, with our plugins in Kafka's own authorizer and quota manager: those
 * that are newer than the throttle, once their share of the leak budget is used up.
 */
class RefusalsTest {
    private static final String P = "client.quota.callback.sidecar.";
    private static final int REFUSED = -1;
    private static final List<AuthorizationResult> ALLOWED = List.of(AuthorizationResult.ALLOWED);

    private final MovedClocks clocks = new MovedClocks();
    private final Lines lines = new Lines();
    private String said = "";
    private final Map<String, String> configs = new HashMap<>();
    private final Connections connections = new Connections(100);
    private final FilteredLog log = new FilteredLog();
    private final CallbackRuntime runtime =
            LoneRuntime.of(Settings.of(configs), connections, log, clocks, lines);
    private final Refusals refusals = runtime.refusals;
    private final SidecarAuthorizer authorizer = new SidecarAuthorizer(connections);
    private final KafkaQuotas kafka = LoneRuntime.kafka(runtime, clocks);
    private int connection;

    RefusalsTest() {
        StandardRig.started(authorizer, StandardRig.OPEN);
    }

    private void set(String key, String value) {
        configs.put(P + key, value);
        runtime.adopt(Settings.of(configs));
    }

    @AfterEach
    void close() throws Exception {
        Mute.none();
        kafka.close();
        authorizer.close();
        assertFalse(connections.hasAuthorizer());
    }

    /** Counts how often the filter is added. */
    private static final class FilteredLog extends RefusalLog {
        private int calls;
        private boolean isFiltered = true;

        FilteredLog() {
            filter();
            calls = 0;
        }

        @Override
        protected boolean addFilter() {
            calls++;
            return isFiltered;
        }
    }

    /** Sends a request of 1 MB, and returns its pause in ms, or REFUSED. */
    private int produce(String connectionId, String clientId, String... topics) {
        return produce(connectionId, clientId, 1e6, topics);
    }

    private int produce(String connectionId, String clientId, double bytes, String... topics) {
        if (!admits(connectionId, clientId, topics)) {
            return REFUSED;
        }
        KafkaPrincipal ann = new KafkaPrincipal("User", "ann");
        return kafka.record(ann, clientId, bytes, clocks.nowMs());
    }

    private boolean admits(String connectionId, String clientId, String... topics) {
        try {
            authorizer.authorize(
                    StandardRig.context(ApiKeys.PRODUCE, connectionId, "ann", clientId),
                    StandardRig.writes(
                            ResourceType.TOPIC, topics.length == 0 ? new String[] {"t"} : topics));
            return true;
        } catch (RefusedException refused) {
            said = refused.getMessage();
            return false;
        }
    }

    /** The id of a new connection. */
    private String dialled() {
        return "127.0.0.1:9092-127.0.0.1:40000-" + connection++;
    }

    private void apply(double factor) {
        apply(new Factors(factor, Map.of(), Factors.Source.SIDECAR, 1));
    }

    private void apply(Factors factors) {
        runtime.apply(factors);
    }

    /** Sends 1 MB/s for ten seconds, on one connection for each client-id. */
    private void runs(String... clientIds) {
        for (int second = 0; second < 10; second++) {
            for (String clientId : clientIds) {
                assertEquals(0, produce("of-" + clientId, clientId));
            }
            clocks.pass(1000);
        }
    }

    /**
     * A client with a new connection for each request lands the leak budget, 0.9 of 1 %, in ten
     * minutes.
     */
    @Test
    void aClientThatDialsAnewLandsItsShareOfTheBudget() {
        runs("app");
        apply(0.0);
        double landed = 0.0;
        for (int request = 0; request < 6000; request++) {
            landed += produce(dialled(), "app", 100_000.0) == REFUSED ? 0.0 : 100_000.0;
            clocks.pass(100);
        }
        // The budget is 10 kB/s. Clients without an earlier rate have the other half.
        double rate = landed / 600.0;
        assertEquals(0.009 * 1e6 / 2.0, rate, 0.1 * rate);
    }

    /** Clients with random client-ids have one fair share together. */
    @Test
    void randomClientIdsShareOneShare() {
        runs("app");
        apply(0.0);
        double landed = 0.0;
        for (int request = 0; request < 6000; request++) {
            String id = "random-" + request;
            landed += produce(dialled(), id, 100_000.0) == REFUSED ? 0.0 : 100_000.0;
            clocks.pass(100);
        }
        double rate = landed / 600.0;
        assertEquals(0.009 * 1e6 / 2.0, rate, 0.1 * rate);
    }

    /** A client that keeps its connection pauses, however long its share has been used up. */
    @Test
    void aClientThatWaitsIsNeverRefused() {
        runs("app");
        apply(0.0);
        for (int request = 0; request < 100; request++) {
            int pause = produce("of-app", "app");
            assertTrue(pause > 0, "a pause of " + pause);
            clocks.pass(pause);
        }
        assertEquals(0, refusals.total());
        assertEquals(REFUSED, produce(dialled(), "app"), "the request that waited has used up the share");
    }

    /** Of any number of simultaneous new connections, one request is admitted at a time. */
    @Test
    void oneRequestIsUnderWayUntilItHasLanded() {
        runs("app");
        apply(0.0);
        assertTrue(admits(dialled(), "app"));
        for (int each = 0; each < 100; each++) {
            assertFalse(admits(dialled(), "app"));
        }
        // The admitted request never landed.
        clocks.pass(5_000);
        assertTrue(admits(dialled(), "app"));
    }

    /** A share of 20 requests a second is repaid, but a refused connection stays refused. */
    @Test
    void theVerdictLastsUntilTheRelease() {
        set("leak.bytes.per.second", "2000000");
        runs("app");
        apply(0.0);
        assertTrue(produce("new-1", "app") >= 0);
        assertEquals(REFUSED, produce("new-2", "app"));
        clocks.pass(60_000);
        assertEquals(REFUSED, produce("new-2", "app"));
        assertTrue(produce("new-3", "app") >= 0);
    }

    /** Afterwards, new-2 has a verdict, and no client is throttled any more. */
    private void releasesOneThatWasRefused() {
        runs("app");
        apply(0.0);
        produce("new-1", "app");
        assertEquals(REFUSED, produce("new-2", "app"));
        clocks.pass(1000);
        apply(1.0);
    }

    /** Requests that may be in flight behind a refused one are refused too, until a break. */
    @Test
    void afterTheReleaseARefusedConnectionIsAdmittedAfterABreak() {
        runs("app");
        apply(0.0);
        assertTrue(produce("new-1", "app") >= 0);
        assertEquals(REFUSED, produce("new-2", "app"));
        clocks.pass(1000);
        apply(1.0);
        for (int inFlight = 0; inFlight < 4; inFlight++) {
            assertEquals(REFUSED, produce("new-2", "app"));
            clocks.pass(80);
        }
        assertEquals(4, refusals.count(Refusals.Reason.RELEASE));
        assertTrue(produce("new-1", "app") >= 0, "it was never refused");
        clocks.pass(Refusals.LONGEST_BREAK_MS - 80);
        assertTrue(produce("new-2", "app") >= 0);
        assertTrue(produce("new-2", "app") >= 0);
    }

    /** While the broker is paused, requests in flight wait in its socket. That is not a break. */
    @Test
    void aBrokerThatStoodStillHadNoBreak() {
        runs("app");
        apply(0.0);
        produce("new-1", "app");
        assertEquals(REFUSED, produce("new-2", "app"));
        passes(1000);
        apply(1.0);
        assertEquals(REFUSED, produce("new-2", "app"));
        for (int inFlight = 0; inFlight < 4; inFlight++) {
            clocks.pass(2 * Refusals.MOST_BREAK_MS);
            assertEquals(REFUSED, produce("new-2", "app"));
            // Nor is it a break if request threads run again before the thread that reads the clock.
            passes(100);
            apply(1.0);
        }
        passes(Refusals.LONGEST_BREAK_MS - 100);
        assertTrue(produce("new-2", "app") >= 0);
    }

    /** Moves the clock while the broker runs. */
    private void passes(long millis) {
        for (long each = 0; each < millis; each += RunningTime.EVERY_MS) {
            runtime.running.look();
            clocks.pass(RunningTime.EVERY_MS);
        }
    }

    /**
     * A client that retries every 80 ms, the shortest delay of clients, is admitted after eight
     * seconds.
     */
    @Test
    void afterTheReleaseABreakMayBeShorterAndShorter() {
        releasesOneThatWasRefused();
        int refused = 0;
        while (refused < 100 && produce("new-2", "app") == REFUSED) {
            refused++;
            clocks.pass(80);
        }
        assertEquals(Refusals.SHRINKS_MS, refused * 80, 400);
        assertTrue(refused * 80 > Refusals.LONGEST_MS);
    }

    /** During a mute after the release, requests in flight wait in the socket as well. */
    @Test
    void aMuteIsNoBreak() {
        releasesOneThatWasRefused();
        boolean isMuted = false;
        for (int each = 0; each < 1000 && !isMuted; each++) {
            assertEquals(REFUSED, produce("new-2", "app"));
            isMuted = Mute.isDue("ann", "app");
            clocks.pass(isMuted ? 1000 : 10);
        }
        assertTrue(isMuted);
        for (int inFlight = 0; inFlight < 4; inFlight++) {
            assertEquals(REFUSED, produce("new-2", "app"));
            clocks.pass(10);
        }
        clocks.pass(Refusals.LONGEST_BREAK_MS - 10);
        assertTrue(produce("new-2", "app") >= 0);
    }

    /** A client that never makes a break is admitted in the end. */
    @Test
    void afterTheReleaseItIsAdmittedInAnyCase() {
        runs("app");
        apply(0.0);
        produce("new-1", "app");
        assertEquals(REFUSED, produce("new-2", "app"));
        apply(1.0);
        long began = clocks.nowMs();
        List<Long> mutes = new ArrayList<>();
        for (int each = 0; each < 5000 && produce("new-2", "app") == REFUSED; each++) {
            if (Mute.isDue("ann", "app")) {
                mutes.add(clocks.nowMs() - began);
            }
            clocks.pass(10);
            // As the reader does during a ramp, beside the requests of other clients.
            apply(1.0);
        }
        assertEquals(List.of(3000L, 6000L, 9000L, 12_000L, 15_000L, 18_000L), mutes);
        assertEquals(Refusals.MOST_BREAK_MS, clocks.nowMs() - began);
    }

    /** Verdicts end some time after the release, even those of clients that send nothing then. */
    @Test
    void verdictsEndWithTheRelease() {
        set("ramp.ms", "0");
        releasesOneThatWasRefused();
        clocks.pass(Refusals.FORGET_MS);
        assertEquals(0, produce("new-3", "app"));
        assertEquals(0, produce("new-2", "app"), "its verdict was forgotten");
    }

    /** A connection that produced between two throttles is older than the second one. */
    @Test
    void isKnownOnceItHasProduced() {
        runs("app");
        apply(0.0);
        produce("new-1", "app");
        assertEquals(REFUSED, produce("new-2", "app"));
        apply(1.0);
        clocks.pass(3000);
        assertEquals(REFUSED, produce("new-2", "app"), "a request that was in flight");
        clocks.pass(3000);
        assertTrue(produce("new-2", "app") >= 0);
        apply(0.0);
        for (int request = 0; request < 5; request++) {
            assertTrue(produce("new-2", "app") >= 0);
        }
    }

    /** New connections do not displace older ones from the table of known connections. */
    @Test
    void newConnectionsPushOutNoneFromBefore() {
        runs("app");
        apply(0.0);
        for (int each = 0; each < 1000; each++) {
            produce(dialled(), "app");
        }
        assertTrue(produce("of-app", "app") > 0);
        assertEquals(1, connections.size());
    }

    /** If more connections produced than the table holds, the most recent ones are known. */
    @Test
    void aFullTableKeepsThoseThatProducedLast() {
        runs("app");
        for (int each = 0; each < 100; each++) {
            produce("before-" + each, "app");
            produce("busy", "app");
        }
        apply(0.0);
        assertTrue(produce("busy", "app") >= 0);
        assertTrue(produce("before-99", "app") >= 0);
        assertEquals(REFUSED, produce("before-0", "app"), "the connection counts as new");
        assertTrue(connections.size() <= 100);
    }

    /**
     * On a broker that starts in a throttle, all connections are new. Together they land the leak
     * budget.
     */
    @Test
    void allAreNewOnABrokerThatStartsInAThrottle() {
        set("leak.bytes.per.second", "1000000");
        apply(0.0);
        assertTrue(produce("a", "app") >= 0);
        assertEquals(REFUSED, produce("b", "app"));
        clocks.pass(1000);
        assertTrue(produce("c", "app") >= 0);
        apply(1.0);
        clocks.pass(1000);
        produce("b", "app");
        clocks.pass(1000);
        assertTrue(produce("b", "app") >= 0);
    }

    /** In a user's own throttle, only that user's connections are refused. */
    @Test
    void aUsersOwnThrottleRefusesThatUser() {
        runs("app");
        apply(new Factors(1.0, Map.of("bob", 0.0), Factors.Source.SIDECAR, 1));
        assertTrue(produce(dialled(), "app") >= 0);
        assertTrue(produce(dialled(), "app") >= 0);
        apply(new Factors(1.0, Map.of("ann", 0.0), Factors.Source.SIDECAR, 2));
        assertTrue(produce(dialled(), "app") >= 0);
        assertEquals(REFUSED, produce(dialled(), "app"));
    }

    /** Requests of other clients, however long they continue, do not end a client's verdict. */
    @Test
    void aVerdictLastsWhileOthersAreFree() {
        set("leak.bytes.per.second", "1000000");
        runs("app");
        apply(new Factors(1.0, Map.of("ann", 0.0), Factors.Source.SIDECAR, 2));
        produce("new-1", "app");
        assertEquals(REFUSED, produce("new-2", "app"));
        clocks.pass(2 * Refusals.FORGET_MS);
        KafkaPrincipal bob = new KafkaPrincipal("User", "bob");
        refusals.check("bobs", bob, "app", false, StandardRig.writes(ResourceType.TOPIC, "t"), ALLOWED);
        assertEquals(REFUSED, produce("new-2", "app"));
    }

    /** Nothing is refused at a factor between 0 and 1, or during a ramp. */
    @Test
    void onlyTheFactorZeroRefuses() {
        runs("app");
        apply(0.5);
        for (int each = 0; each < 10; each++) {
            assertTrue(produce(dialled(), "app") >= 0);
        }
        apply(0.0);
        apply(1.0);
        for (int each = 0; each < 10; each++) {
            assertTrue(produce(dialled(), "app") >= 0);
        }
    }

    /** Nothing is refused while refusal, or the whole callback, is switched off. */
    @Test
    void isSwitchedOff() {
        runs("app");
        apply(0.0);
        produce(dialled(), "app");
        assertEquals(REFUSED, produce("new", "app"));
        set("refuse.enabled", "false");
        clocks.pass(1000);
        produce("new", "app");
        clocks.pass(1000);
        assertTrue(produce("new", "app") > 0, "it pauses and is not refused");
        assertTrue(produce(dialled(), "app") > 0);
        set("refuse.enabled", "true");
        assertEquals(REFUSED, produce(dialled(), "app"));
        apply(Factors.DISABLED);
        assertEquals(0, produce(dialled(), "app"));
    }

    /** Excluded users, and requests that write only to excluded topics, are never refused. */
    @Test
    void whoIsExcludedIsNotRefused() {
        set("excluded.topics", "__remote_log_metadata, connect-*");
        runs("app");
        apply(0.0);
        produce(dialled(), "app");
        assertEquals(REFUSED, produce(dialled(), "app"));
        assertTrue(admits(dialled(), "app", "__remote_log_metadata"));
        assertTrue(admits(dialled(), "app", "connect-offsets", "__remote_log_metadata"));
        assertFalse(admits(dialled(), "app", "connect-offsets", "t"));
        set("excluded.principals", "User:ann");
        assertTrue(admits(dialled(), "app"));
    }

    /** A client that writes only to excluded topics has no pauses, until it writes to another topic. */
    @Test
    void whoWritesToExcludedTopicsAloneIsNotPaused() {
        String metadata = "__remote_log_metadata";
        runs("app");
        for (int request = 0; request < 5; request++) {
            assertEquals(0, produce("tiered", "rlmm", metadata));
            assertEquals(0, produce("mixed", "mixed", request == 0 ? "t" : metadata));
        }
        apply(0.0);
        for (int request = 0; request < 5; request++) {
            assertEquals(0, produce("tiered", "rlmm", metadata));
            assertEquals(0, produce("tiered-2", "rlmm", metadata));
        }
        assertTrue(produce("of-app", "app") > 0);
        assertTrue(produce("tiered", "rlmm", metadata, "t") > 0);
        assertTrue(produce("tiered", "rlmm", metadata) > 0, "the client wrote to another topic once");
    }

    /** However many clients write to excluded topics, the last of them are excluded. */
    @Test
    void excludedWritersAreBounded() {
        ExcludedWriters writers = new ExcludedWriters(() -> {});
        int clients = 3 * ExcludedWriters.MOST;
        for (int client = 0; client < clients; client++) {
            writers.saw("ann", "c" + client, true);
            // Streams' producers write to other topics, too.
            writers.saw("ann", "c" + client, client % 2 == 0);
        }
        for (int client = clients - ExcludedWriters.MOST; client < clients; client++) {
            assertEquals(client % 2 == 0, writers.has("ann", "c" + client));
        }
        assertFalse(writers.has("ann", "c0"));
        writers.clear();
        assertFalse(writers.has("ann", "c" + (clients - 2)));
    }

    /** A client-id with line ends does not imitate lines of the broker's log. */
    @Test
    void noClientForgesLines() {
        runs("app");
        apply(0.0);
        String forged = "x\n[2026-11-27 05:00:00,000] ERROR Shutdown broker";
        for (int each = 0; each < 3; each++) {
            produce(dialled(), forged);
        }
        assertEquals(1, lines.count("Refused 1 produce requests"), lines.toString());
        assertEquals(0, lines.count("\n[2026"), lines.toString());
        assertEquals("x [2026", Journal.line("x\n[2026"));
    }

    /** Below the stop line, only excluded clients are admitted, whatever happened before. */
    @Test
    void belowTheStopLineNobodyIsAdmitted() {
        runs("app");
        apply(new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1, Leak.WHOLE, true, false, Scope.ALL));
        assertEquals(REFUSED, produce("of-app", "app"));
        assertEquals(REFUSED, produce(dialled(), "app"));
        assertEquals(2, refusals.count(Refusals.Reason.STOP_LINE));
        assertTrue(admits(dialled(), "app", "__remote_log_metadata"));
        apply(0.0);
        clocks.pass(1000);
        assertEquals(REFUSED, produce("of-app", "app"), "a request that was in flight");
        clocks.pass(1000);
        assertTrue(produce("of-app", "app") > 0);
    }

    /** The exception's message is for the client, and the log line is for the operator. */
    @Test
    void saysWhyARequestIsRefused() {
        runs("app");
        apply(0.0);
        produce("new", "app");
        assertEquals("", said);
        produce("new", "app");
        assertTrue(said.contains("new connections are refused until the release"), said);
        apply(new Factors(0.0, Map.of(), Factors.Source.SIDECAR, 1, Leak.WHOLE, true, false, Scope.ALL));
        clocks.pass(60_000);
        produce("of-app", "app");
        assertTrue(said.contains("all producers are refused, since a volume is nearly"), said);
        assertEquals(1, lines.count("app: all producers are refused"), lines.toString());
        apply(1.0);
        produce("of-app", "app");
        assertTrue(said.contains("until it has waited for its answers"), said);
    }

    /**
     * A refusal mutes the connection. A refusal after the release does not, so that requests in flight
     * come at once.
     */
    @Test
    void mutesUntilTheRelease() {
        runs("app");
        apply(0.0);
        produce(dialled(), "app");
        assertFalse(Mute.isDue("ann", "app"));
        assertEquals(REFUSED, produce("new", "app"));
        assertTrue(Mute.isDue("ann", "app"));
        assertFalse(Mute.isDue("ann", "app"), "once");
        apply(1.0);
        assertEquals(REFUSED, produce("new", "app"));
        assertFalse(Mute.isDue("ann", "app"));
    }

    /** A mute that was due on a thread does not apply to a later request on that thread. */
    @Test
    void aMuteIsForOneRequest() {
        runs("app");
        apply(0.0);
        produce(dialled(), "app");
        assertEquals(REFUSED, produce("new", "app"));
        assertFalse(Mute.isDue("ann", "other"));
        assertFalse(Mute.isDue("ann", "app"));
        assertEquals(REFUSED, produce("new", "app"));
        assertTrue(produce("of-app", "app") > 0);
        assertFalse(Mute.isDue("ann", "app"));
    }

    /** The callback logs one line a minute, with a count. Kafka's own log has no line of a refusal. */
    @Test
    void writesALineAMinute() {
        runs("app");
        apply(0.0);
        produce(dialled(), "app");
        for (int each = 0; each < 121; each++) {
            assertEquals(REFUSED, produce(dialled(), "app"));
            clocks.pass(1000);
        }
        assertEquals(121, log.calls);
        assertEquals(3, lines.count("Refused"), lines.toString());
        assertEquals(2, lines.count("Refused 60 produce requests"), lines.toString());
        assertEquals(REFUSED, produce(dialled(), "app"));
        apply(1.0);
        assertEquals(3, lines.count("Refused"), lines.toString());
        apply(0.0);
        clocks.pass(60_000);
        apply(1.0);
        apply(1.0);
        assertEquals(1, lines.count("Refused 1 more"), lines.toString());
    }

    /** The broker reports to the sidecar if each refusal is an error in the broker's log. */
    @Test
    void saysWhereItsRefusalsAreLogged() {
        String counts = "new_connection=0; stop_line=0; release=0";
        assertEquals(counts, runtime.headers().get("Throttle-Refused"));
        log.isFiltered = false;
        log.filter();
        assertEquals(counts + "; logged=true", runtime.headers().get("Throttle-Refused"));
    }

    /** The broker reports its version of Kafka, since some versions have faults. */
    @Test
    void reportsTheVersionOfKafka() {
        assertTrue(runtime.headers().get("Throttle-Kafka").matches("\\d+\\.\\d+\\.\\d+.*"));
    }
}
