package throttlesidecar.reading;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import throttlesidecar.KafkaQuotas;
import throttlesidecar.LoneRuntime;
import throttlesidecar.decision.Factors;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.Lines;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.MovedClocks;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.volumes.Volume;

/**
 * Plays scenarios of answers and produce requests, so that a model can be compared with the callback. It
 * reads one JSON object a line from standard input, and writes one JSON array for each to standard output.
 *
 * <p>A scenario has the callback's "properties", the "quotas" as [user, client-id, bytes per second]
 * (null: no such part, "": the default), optionally the document that an earlier run "kept" as [document,
 * age in ms], and the "events", each at a millisecond:
 *
 * <pre>
 * [ms, "charge", user, client-id, bytes]              a produce request was appended
 * [ms, "answer", began ms, status, headers, body]     the sidecar answered; status null: no answer
 * [ms, "other", began ms, status, headers, body, n]   another sidecar answered, by its number
 * [ms, "readings", available bytes, total bytes]      the broker read its volume
 * [ms, "wall", ms]                                    the wall clock moves by ms
 * </pre>
 *
 * <p>The array has, in order, ["pause", ms] for each charge, ["request", nanoseconds, entity tag or
 * null, wait in s, throttled tag sets, whether it is an emergency], and ["factor", nanoseconds, factor,
 * source, whether nothing is admitted] for each change.
 *
 * <p>One thread does the work of all threads of {@link SidecarReader} and the runtime.
 */
public final class ScenarioPlayer implements Clocks {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long START_MS = 1_700_000_000_000L;

    /** How often Kafka removes expired sensors. */
    private static final long EXPIRY_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final Settings settings;
    private final LoneRuntime runtime;
    private final Enforcement enforcement;
    private final Metrics metrics;
    private final ReaderState state;
    private final ArrayNode trace = JSON.createArrayNode();
    private long nanos;
    private long wallOffsetMs;
    private long expiryNanos = EXPIRY_NANOS;
    private ReaderState.Request pending;
    private long deadlineNanos;
    private String inForce = "";

    private ScenarioPlayer(Map<String, String> properties) {
        settings = Settings.of(properties);
        runtime = new LoneRuntime(settings, this);
        enforcement = runtime.enforcement();
        metrics = LoneRuntime.metrics(runtime.tagSets(), this);
        state = new ReaderState(settings, new Faults(), new Lines(), nanos);
        state.adoptOthers(settings.enabled ? settings.urls.size() - 1 : 0);
    }

    /** Plays scenarios until standard input ends. */
    public static void main(String[] arguments) throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintWriter out = new PrintWriter(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode scenario = JSON.readTree(line);
            ScenarioPlayer played = new ScenarioPlayer(texts(scenario.get("properties")));
            if (scenario.has("kept")) {
                played.remember(scenario.get("kept"));
            }
            played.play(scenario.get("quotas"), scenario.get("events"));
            out.println(played.trace);
        }
    }

    private static Map<String, String> texts(JsonNode object) {
        Map<String, String> texts = new HashMap<>();
        object.fields().forEachRemaining(member ->
                texts.put(member.getKey(), member.getValue().asText()));
        return texts;
    }

    private void remember(JsonNode kept) {
        byte[] body = kept.get(0).asText().getBytes(StandardCharsets.UTF_8);
        try {
            state.remember(DocumentReader.read(body), kept.get(1).asLong(), nanos);
        } catch (WrongAnswer wrong) {
            throw new AssertionError(wrong);
        }
    }

    private void play(JsonNode limits, JsonNode events) {
        try (KafkaQuotas kafka = runtime.quotas(metrics, MovedClocks.time(this))) {
            limits.forEach(limit ->
                    kafka.set(text(limit.get(0)), text(limit.get(1)), limit.get(2).asDouble()));
            step();
            for (JsonNode event : events) {
                long at = TimeUnit.MILLISECONDS.toNanos(event.get(0).asLong());
                wakeUntil(at);
                moveTo(at);
                happens(kafka, event);
            }
        }
    }

    private static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    private void happens(KafkaQuotas kafka, JsonNode event) {
        switch (event.get(1).asText()) {
            case "charge":
                KafkaPrincipal principal =
                        new KafkaPrincipal(KafkaPrincipal.USER_TYPE, event.get(2).asText());
                int pause = kafka.record(
                        principal, event.get(3).asText(), event.get(4).asDouble(), nowMs());
                // A negative pause is the cast of too large a long. A broker does not mute for it.
                trace.addArray().add("pause").add(Math.max(0, pause));
                break;
            case "answer":
                if (pending != null) {
                    Answer answer = answer(event, pending.etag);
                    pending = null;
                    state.onAnswer(answer, nanos);
                    step();
                }
                break;
            case "other":
                state.onOther(event.get(6).asInt(), answer(event, null));
                step();
                break;
            case "readings":
                Volume volume =
                        new Volume(event.get(2).asLong(), event.get(3).asLong());
                state.onReadings(Map.of("/d", volume));
                step();
                break;
            default:
                wallOffsetMs += event.get(2).asLong();
        }
    }

    private static Answer answer(JsonNode event, String etag) {
        if (event.get(3).isNull()) {
            return Answer.failed("no answer");
        }
        String headers = texts(event.get(4)).entrySet().stream()
                .map(header -> header.getKey() + ": " + header.getValue() + "\r\n")
                .collect(Collectors.joining());
        // The body ends with the connection.
        String whole = "HTTP/1.1 " + event.get(3).asInt() + " -\r\n" + headers + "\r\n"
                + event.get(5).asText();
        try {
            return SidecarClient.answer(
                    HttpAnswer.read(new ByteArrayInputStream(whole.getBytes(StandardCharsets.UTF_8))),
                    etag,
                    TimeUnit.MILLISECONDS.toNanos(event.get(2).asLong()));
        } catch (WrongAnswer wrong) {
            return Answer.failed(wrong);
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        } catch (RuntimeException bug) {
            // The reader counts a bug in the same way.
            return Answer.failed(bug.toString());
        }
    }

    private void wakeUntil(long until) {
        for (long next = nextNanos(); next <= until; next = nextNanos()) {
            moveTo(Math.max(next, nanos));
            if (pending != null && nanos >= deadlineNanos) {
                pending = null;
                state.onAnswer(Answer.failed("no whole answer"), nanos);
            }
            step();
        }
    }

    private long nextNanos() {
        long next = state.nextNanos(nanos);
        return pending == null ? next : Math.min(next, deadlineNanos);
    }

    private void step() {
        Factors factors = state.decide(nanos);
        if (factors != null) {
            runtime.enforce(factors);
        }
        noteChange();
        ReaderState.Request request = state.nextRequest(nanos);
        if (request != null) {
            // As its headers are made.
            enforcement.noteClock();
            pending = request;
            deadlineNanos = nanos
                    + TimeUnit.SECONDS.toNanos(request.waitS)
                    + TimeUnit.MILLISECONDS.toNanos(SidecarClient.TIMEOUT_MS);
            trace.addArray()
                    .add("request")
                    .add(nanos)
                    .add(request.etag)
                    .add(request.waitS)
                    .add(enforcement.figures().tagSetsThrottled)
                    .add(enforcement.figures().emergency);
        }
    }

    private void noteChange() {
        Factors factors = enforcement.figures().factors;
        String now = factors.global + " " + factors.source + " " + factors.admitsNobody;
        if (!now.equals(inForce)) {
            inForce = now;
            trace.addArray()
                    .add("factor")
                    .add(nanos)
                    .add(factors.global)
                    .add(factors.source.name())
                    .add(factors.admitsNobody);
        }
    }

    /** Moves the time. Kafka removes sensors that have expired meanwhile. */
    private void moveTo(long to) {
        if (to >= expiryNanos) {
            nanos = to - (to - expiryNanos) % EXPIRY_NANOS;
            expiryNanos = nanos + EXPIRY_NANOS;
            expire();
        }
        nanos = to;
    }

    private void expire() {
        try {
            Class<?> task = Class.forName(Metrics.class.getName() + "$ExpireSensorTask");
            Constructor<?> made = task.getDeclaredConstructor(Metrics.class);
            made.setAccessible(true);
            ((Runnable) made.newInstance(metrics)).run();
        } catch (ReflectiveOperationException changed) {
            throw new AssertionError("Kafka's sensors expire in another way", changed);
        }
    }

    @Override
    public long nowMs() {
        return START_MS + TimeUnit.NANOSECONDS.toMillis(nanos) + wallOffsetMs;
    }

    @Override
    public long nanos() {
        return nanos;
    }
}
