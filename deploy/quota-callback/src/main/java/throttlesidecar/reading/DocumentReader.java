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
import throttlesidecar.decision.Budgets;
import throttlesidecar.decision.Scope;
import throttlesidecar.observability.Journal;
import throttlesidecar.volumes.VolumeLine;

/**
 * Reads the document of factors and refuses every impossible value.
 *
 * <p>{@code factor} and {@code valid_for_ms} are required, and the other members are optional. Unknown
 * members are ignored. One invalid member makes the whole document invalid.
 *
 * <p>The document is read as a stream. A tree of 4 MiB of brackets would take some hundred MiB of a
 * broker's heap, and a number of 4 million digits would take a minute.
 *
 * <p>Example: {@code {"factor":0.0,"users":{"etl":0.5},"valid_for_ms":299000}} stops all producers,
 * those of etl too: of a user's factor and the factor for all, the stricter one applies.
 */
final class DocumentReader {
    /** Each user with a factor of its own costs a set of metrics; a larger number is a mistake. */
    static final int MOST_USERS = 10_000;

    /** A longer validity is cut to a year, in ms, so that sums stay within a long. */
    static final long LONGEST_VALIDITY_MS = 365L * 24 * 3600 * 1000;

    /** A sidecar names far fewer topics, or throttles all producers. */
    static final int MOST_TOPICS = 100_000;

    private static final int LONGEST_NUMBER = 64;
    private static final int LONGEST_NAME = 1024;
    private static final int LONGEST_REASON = 500;
    private static final int DEEPEST = 16;

    /** User names are data: interned or canonical names would stay in memory forever. */
    private static final JsonFactory JSON = JsonFactory.builder()
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
     * @throws WrongAnswer the document can't be used; the message is the reason.
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

    /** Decodes UTF-8 strictly; without canonical names, Jackson would replace invalid bytes. */
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
            case "budgets":
                document.budgets = budgets(value);
                break;
            case "release_margin":
                releaseMargin = positive(name, value);
                break;
            default:
                skip(value);
        }
    }

    /** The text of a value; empty if the value is no text. */
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
            case "observation":
                return Document.Source.OBSERVATION;
            default:
                // The fallback, or a source of a later version, of which nothing is known.
                return Document.Source.NONE;
        }
    }

    /**
     * Reads a limit. An unknown type makes the whole document invalid: otherwise this broker would
     * silently not watch its own volumes.
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
        return Scope.of(topics(first));
    }

    private Set<String> topics(JsonToken first) throws IOException, WrongAnswer {
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
        return topics;
    }

    /** Reads the owners past their storage budgets. */
    private Budgets budgets(JsonToken first) throws IOException, WrongAnswer {
        if (first != JsonToken.START_ARRAY) {
            throw new WrongAnswer("budgets is no array");
        }
        Map<String, Double> factors = new HashMap<>();
        Map<String, String> owners = new HashMap<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            budget(factors, owners);
            if (factors.size() > MOST_USERS || owners.size() > MOST_TOPICS) {
                throw new WrongAnswer("budgets has too many members");
            }
        }
        return new Budgets(factors, owners);
    }

    private void budget(Map<String, Double> factors, Map<String, String> owners)
            throws IOException, WrongAnswer {
        if (parser.currentToken() != JsonToken.START_OBJECT) {
            throw new WrongAnswer("budgets has a member that is no object");
        }
        String owner = "";
        double factor = Double.NaN;
        Set<String> topics = Set.of();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.getCurrentName();
            JsonToken value = parser.nextToken();
            if (name.equals("owner")) {
                owner = text(value);
            } else if (name.equals("factor")) {
                factor = factor("the factor of a budget", value);
            } else if (name.equals("topics")) {
                topics = topics(value);
            } else {
                skip(value);
            }
        }
        if (owner.isEmpty() || owner.length() > LONGEST_NAME || Double.isNaN(factor)) {
            throw new WrongAnswer("budgets has a member without an owner or a factor");
        }
        factors.put(owner, factor);
        for (String topic : topics) {
            owners.put(topic, owner);
        }
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
        // Turns -0.0 into 0.0.
        return number + 0.0;
    }

    private long whole(String name, JsonToken value, long most) throws IOException, WrongAnswer {
        if (value != JsonToken.VALUE_NUMBER_INT) {
            throw new WrongAnswer(name + " is not a whole number");
        }
        // The cast saturates, and is inexact beyond 2^53, where no values are compared.
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

    /** The text as one log line, so that a sidecar's text can't imitate the broker's lines. */
    static String printable(String text) {
        boolean fits = text.codePointCount(0, text.length()) <= LONGEST_REASON;
        String cut = fits ? text : text.substring(0, text.offsetByCodePoints(0, LONGEST_REASON));
        return Journal.line(cut);
    }
}
