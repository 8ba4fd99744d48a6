package throttlesidecar.observability;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

/** A journal that a test reads. Lines begin with I: or W:. */
public final class Lines implements Journal {
    private final List<String> lines = new CopyOnWriteArrayList<>();

    @Override
    public void info(String line) {
        lines.add("I: " + line);
    }

    @Override
    public void warn(String line) {
        lines.add("W: " + line);
    }

    public List<String> all() {
        return lines;
    }

    /** How many lines contain a text. */
    public long count(String part) {
        return lines.stream().filter(line -> line.contains(part)).count();
    }

    @Override
    public String toString() {
        return lines.stream().collect(Collectors.joining("\n"));
    }
}
