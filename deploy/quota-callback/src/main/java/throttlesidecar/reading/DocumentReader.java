package throttlesidecar.reading;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import throttlesidecar.decision.Scope;
import throttlesidecar.volumes.VolumeLine;

/**
 * Reads the document of factors, and refuses every value that is not possible.
 *
 * <p>{@code factor} and {@code valid_for_ms} are required; {@code users},
 * {@code generation} and {@code reason} may be missing; other members are
 * ignored. One wrong member makes the whole document wrong.
 *
 * <p>It is read as a stream, since a tree of 4 MiB of brackets takes some hundred MiB of a broker's
 * heap, and a number of 4 million digits a minute of its time.
 *
 * <p>Example: {@code {"factor":0.0,"users":{"etl":0.5},"valid_for_ms":299000}} stops all
 * producers, etl's too: of its own factor and that of all the stricter applies.
 */
final class DocumentReader {
    /** A user with a factor of its own costs a set of metrics; more of them is a mistake. */
    static final int MOST_USERS = 10_000;

    /** A longer validity is cut to this one, a year in ms, so that sums stay within a long. */
    static final long LONGEST_VALIDITY_MS = 365L * 24 * 3600 * 1000;

    /** A sidecar names far fewer, or all producers are throttled. */
    static final int MOST_TOPICS = 100_000;

    private static final int LONGEST_NUMBER = 64;
    private static final int LONGEST_NAME = 1024;
    private static final int LONGEST_REASON = 500;
    private static final int DEEPEST = 16;

    /** User names are data: interned or canonical names would stay in memory for ever. */
    private static final JsonFactory JSON =
            JsonFactory.builder()
                    .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
                    .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
                    .build();

    private final JsonParser parser;
    private final Document document = new Document();
    private boolean isSloped;
    private double releaseMargin;

    private DocumentReader(JsonParser parser) {
        this.parser = parser;
    }

    /**
     * Reads an answer's body.
     *
     * @throws WrongAnswer its message is the reason.
     */
    static Document read(byte[] body) throws WrongAnswer {
        try (JsonParser parser = JSON.createParser(text(body))) {
            parser.enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION);
            return new DocumentReader(parser).document(body);
        } catch (CharacterCodingException error) {
            throw new WrongAnswer("it is not JSON: it is not UTF-8", error);
        } catch (JsonProcessingException error) {
            String problem = printable(error.getOriginalMessage());
            throw new WrongAnswer("it is not JSON: " + problem, error);
        } catch (IOException error) {
            throw new WrongAnswer("it is not JSON: " + printable(error.getMessage()), error);
        }
    }

    /** Jackson would replace bytes that are no UTF-8, since names are not canonical. */
    private static String text(byte[] body) throws CharacterCodingException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
    }

    private Document document(byte[] body) throws IOException, WrongAnswer {
        if (parser.nextToken() != JsonToken.START_OBJECT) {
            throw new WrongAnswer("it is no JSON object");
        }
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            member(parser.getCurrentName());
        }
        if (parser.nextToken() != null) {
            throw new WrongAnswer("there is something after the JSON object");
        }
        if (Double.isNaN(document.factor)) {
            throw new WrongAnswer("factor is missing");
        }
        if (document.validForMs < 0) {
            throw new WrongAnswer("valid_for_ms is missing");
        }
        if (isSloped && document.source == Document.Source.OBSERVATION) {
            document.source = Document.Source.SLOPE;
        }
        if (document.limit != null) {
            document.limit = document.limit.withMargin(releaseMargin);
        }
        document.body = body;
        return document;
    }

    private void member(String name) throws IOException, WrongAnswer {
        JsonToken value = parser.nextToken();
        switch (name) {
            case "factor":
                document.factor = factor(name, value);
                break;
            case "users":
                document.users = users(value);
                break;
            case "generation":
                document.generation = whole(name, value, Long.MAX_VALUE);
                break;
            case "valid_for_ms":
                document.validForMs = whole(name, value, LONGEST_VALIDITY_MS);
                break;
            case "reason":
                document.reason = printable(text(value));
                break;
            case "source":
                document.source = source(text(value));
                break;
            case "stop":
                document.stops = flag(name, value);
                break;
            case "slope":
                isSloped = flag(name, value);
                break;
            case "limit":
                document.limit = line(name, value);
                break;
            case "stop_line":
                document.stopLine = line(name, value);
                break;
            case "scope":
                document.isOfVolumes = text(value).equals("volume");
                break;
            case "topics":
                document.scope = scope(value);
                break;
            case "release_margin":
                releaseMargin = positive(name, value);
                break;
            default:
                skip(value);
        }
    }

    /** Empty where it is no text. */
    private String text(JsonToken value) throws IOException {
        return value == JsonToken.VALUE_STRING ? parser.getText() : "";
    }

    private static boolean flag(String name, JsonToken value) throws WrongAnswer {
        if (!value.isBoolean()) {
            throw new WrongAnswer(name + " is neither true nor false");
        }
        return value == JsonToken.VALUE_TRUE;
    }

    private static Document.Source source(String name) {
        switch (name) {
            case "override":
            case "disabled":
            case "shadow":
                return Document.Source.OPERATOR;
            case "fallback":
                return Document.Source.NONE;
            default:
                return Document.Source.OBSERVATION;
        }
    }

    /**
     * A limit of an unknown type makes the whole document wrong: without it this broker would not watch
     * its own volumes, and nobody would know.
     */
    private VolumeLine line(String member, JsonToken first) throws IOException, WrongAnswer {
        if (first == JsonToken.VALUE_NULL) {
            return null;
        }
        if (first != JsonToken.START_OBJECT) {
            throw new WrongAnswer(member + " is neither an object nor null");
        }
        String type = "";
        double value = Double.NaN;
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.getCurrentName();
            JsonToken token = parser.nextToken();
            if (name.equals("type") && token == JsonToken.VALUE_STRING) {
                type = text(token);
            } else if (name.equals("value")) {
                value = positive("the value of a limit", token);
            } else {
                skip(token);
            }
        }
        boolean isRatio = type.equals("min_available_ratio");
        if (!isRatio && !type.equals("min_available_bytes")) {
            throw WrongAnswer.ofLaterVersion(member + " is of the type " + printable(type));
        }
        if (Double.isNaN(value)) {
            throw new WrongAnswer(member + " has no value");
        }
        return new VolumeLine(isRatio, value, 0.0);
    }

    private Scope scope(JsonToken first) throws IOException, WrongAnswer {
        if (first == JsonToken.VALUE_NULL) {
            return Scope.ALL;
        }
        if (first != JsonToken.START_ARRAY) {
            throw new WrongAnswer("topics is neither an array nor null");
        }
        Set<String> topics = new HashSet<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            if (parser.currentToken() != JsonToken.VALUE_STRING
                    || parser.getTextLength() > LONGEST_NAME) {
                throw new WrongAnswer("topics has a member that is no topic");
            }
            topics.add(parser.getText());
            if (topics.size() > MOST_TOPICS) {
                throw new WrongAnswer("topics has more than " + MOST_TOPICS + " members");
            }
        }
        return Scope.of(topics);
    }

    private Map<String, Double> users(JsonToken value) throws IOException, WrongAnswer {
        if (value != JsonToken.START_OBJECT) {
            throw new WrongAnswer("users is no object");
        }
        Map<String, Double> users = new HashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String user = parser.getCurrentName();
            if (user.isEmpty() || user.length() > LONGEST_NAME) {
                throw new WrongAnswer("users has a name of " + user.length() + " characters");
            }
            users.put(user, factor("the factor of a user", parser.nextToken()));
            if (users.size() > MOST_USERS) {
                throw new WrongAnswer("users has more than " + MOST_USERS + " members");
            }
        }
        return users;
    }

    private double factor(String name, JsonToken value) throws IOException, WrongAnswer {
        double number = positive(name, value);
        if (number > 1.0) {
            throw new WrongAnswer(name + " is " + number + ", which is not within [0, 1]");
        }
        return number;
    }

    /** A finite number of at least 0. */
    private double positive(String name, JsonToken value) throws IOException, WrongAnswer {
        if (!value.isNumeric() || parser.getTextLength() > LONGEST_NUMBER) {
            throw new WrongAnswer(
                    name + " is not a number of at most " + LONGEST_NUMBER + " characters");
        }
        double number = parser.getDoubleValue();
        if (!(number >= 0.0) || Double.isInfinite(number)) {
            throw new WrongAnswer(name + " is " + number);
        }
        // Makes -0.0 the 0.0 that it equals.
        return number + 0.0;
    }

    private long whole(String name, JsonToken value, long most) throws IOException, WrongAnswer {
        if (value != JsonToken.VALUE_NUMBER_INT) {
            throw new WrongAnswer(name + " is not a whole number");
        }
        // The cast is saturating, beyond 2^53 inexact, and nothing that is compared lies there.
        return Math.min((long) positive(name, value), most);
    }

    private void skip(JsonToken first) throws IOException, WrongAnswer {
        int depth = first.isStructStart() ? 1 : 0;
        while (depth > 0) {
            JsonToken token = parser.nextToken();
            if (token == null) {
                throw new WrongAnswer("it is not JSON: it ends too early");
            }
            if (token.isStructStart()) {
                depth++;
            } else if (token.isStructEnd()) {
                depth--;
            }
            if (depth > DEEPEST) {
                throw new WrongAnswer("it is nested more than " + DEEPEST + " deep");
            }
        }
    }

    /** One line for a log: a sidecar's text must not look like lines of the broker. */
    static String printable(String text) {
        int end = Math.min(text.length(), LONGEST_REASON);
        StringBuilder line = new StringBuilder(end);
        text.codePoints()
                .limit(end)
                .map(c -> Character.isISOControl(c) || isInvisible(c) ? ' ' : c)
                .forEach(line::appendCodePoint);
        return line.toString();
    }

    private static boolean isInvisible(int codePoint) {
        switch (Character.getType(codePoint)) {
            case Character.FORMAT:
            case Character.LINE_SEPARATOR:
            case Character.PARAGRAPH_SEPARATOR:
            case Character.SURROGATE:
            case Character.UNASSIGNED:
                return true;
            default:
                return false;
        }
    }
}
