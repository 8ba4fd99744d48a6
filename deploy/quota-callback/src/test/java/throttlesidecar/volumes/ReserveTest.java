package throttlesidecar.volumes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.Deflater;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import throttlesidecar.observability.Lines;
import throttlesidecar.volumes.Reserve.Step;

/** A reserve is made where there is room, released where a starting broker needs it, and made again. */
class ReserveTest {
    private static final long TOTAL = 100L << 20;

    /** Released at 30 MiB available, and no longer reached above 40 MiB. */
    private static final VolumeLine LIMIT = new VolumeLine(false, 30 << 20, 10 << 20);

    @TempDir
    private Path folder;

    private final Lines lines = new Lines();
    private long available = TOTAL;
    private Long wanted = 20L << 20;
    private VolumeLine limit = LIMIT;

    private final OwnVolumePoller.Disk disk = new OwnVolumePoller.Disk() {
        @Override
        public Volume look(String logDir) {
            return new Volume(available, TOTAL);
        }
    };

    private Reserves reserves() {
        return new Reserves(
                List.of(folder.toString()), disk, () -> wanted, () -> limit, lines, error -> {});
    }

    private void start() {
        Reserves.release(List.of(folder.toString()), disk, limit, lines);
    }

    private Path file() {
        return folder.resolve(Reserve.NAME);
    }

    private long size() throws IOException {
        return Files.exists(file()) ? Files.size(file()) : -1;
    }

    private static VolumeLine limit(String mib) {
        return mib == null ? null : LIMIT;
    }

    /** What is done, of a reserve of 20 (MiB) and the limit above, by all that it depends on. */
    @ParameterizedTest
    @CsvSource(nullValues = "-", value = {
        // bytes, unfinished, wanted, available, limit: step
        "-1, -1, 20, 61, 30: GROW, there is room above the limit's margin",
        "-1, -1, 20, 60, 30: REST, the margin would be reached",
        "-1,  8, 20, 43, 30: GROW, once begun only the limit counts",
        "-1,  8, 20, 42, 30: GIVE_UP, the limit would be reached",
        "-1, 28, 20, 90, 30: GIVE_UP, it is already larger than a smaller one",
        " 0, -1, 20, 61, 30: GROW, after a release too",
        " 0, -1, 20, 60, 30: REST, and it stays released",
        "20, -1, 20,  1, 30: REST, it is there",
        "20,  8, 20, 90, 30: GIVE_UP, and another one is not needed",
        "10, -1, 20, 51, 30: DELETE, for a larger one",
        "10, -1, 20, 50, 30: REST, a larger one has no room",
        "30, -1, 20, 41, 30: DELETE, for a smaller one",
        "-1, -1, 20, 40,  -: GROW, without a limit as much remains",
        "-1, -1, 20, 39,  -: REST, less would remain",
        "20, -1,  0,  1, 30: DELETE, it is switched off",
        " 0, -1,  0,  1, 30: DELETE, the stop is over too",
        "-1,  8,  0, 90, 30: DELETE, an unfinished one",
        "-1, -1,  0, 90, 30: REST, nothing is there",
        "20, -1,  -, 90, 30: REST, a file stays while nothing is configured",
        " 0, -1,  -, 40, 30: REST, a released one too",
        " 0, -1,  -, 41, 30: DELETE, until there is space",
        " 0, -1,  -, 10,  -: REST, without a limit a tenth is no space: the reserve may have been as much",
        " 0, -1,  -, 11,  -: DELETE, more is",
        "-1,  8,  -, 90, 30: GIVE_UP, it is no longer configured",
    })
    void whatIsDone(String bytes, String unfinished, String wanted, String available, String rest, String why) {
        String[] last = rest.split(": ");
        assertEquals(
                Step.valueOf(last[1]),
                Reserve.next(
                        mib(bytes), mib(unfinished), wanted == null ? null : (Long) mib(wanted),
                        new Volume(mib(available), TOTAL), limit(last[0].equals("-") ? null : last[0])),
                why);
    }

    private static long mib(String text) {
        long number = Long.parseLong(text.trim());
        return number < 0 ? number : number << 20;
    }

    /** A broker gets the reserve only if it has less, and only below the limit, if one is known. */
    @ParameterizedTest
    @CsvSource(nullValues = "-", value = {
        "20, 19, 30, true", "20, 20, 30, false", "40, 30, 30, true", "40, 31, 30, false",
        "40, 39, -, true", "0, 0, 30, false", "-1, 0, 30, false"
    })
    void whenItIsNeeded(String bytes, String available, String limit, boolean isNeeded) {
        Volume volume = new Volume(mib(available), TOTAL);
        assertEquals(isNeeded, Reserve.isNeeded(mib(bytes), volume, limit(limit)));
    }

    /** Each tick writes a chunk, of bytes that no file system stores in fewer; the last one completes it. */
    @Test
    void itIsMadeInChunksAndReleasedAtAStart() throws IOException {
        Reserves reserves = reserves();
        reserves.tick();
        reserves.tick();
        assertEquals(-1, size());
        assertEquals("", reserves.report());
        assertFalse(Reserve.isReleased(folder.toString()));
        reserves.tick();
        assertEquals(20 << 20, size());
        byte[] made = Files.readAllBytes(file());
        assertTrue(deflated(made) > made.length * 0.99);
        assertEquals(
                folder.toString().replace("/", "%2F") + ":" + (20 << 20), reserves.report());

        available = 31L << 20;
        start();
        assertEquals(20 << 20, size(), "the volume is above the limit");
        available = 20L << 20;
        start();
        assertEquals(20 << 20, size(), "the broker has as much as the reserve");
        available--;
        start();
        assertEquals(0, size());
        assertTrue(Reserve.isReleased(folder.toString()));
        assertEquals(1, lines.count("W: The volume of " + folder + " has only 20971519 bytes available, so"));
        start();
        reserves.tick();
        assertEquals(0, size(), "a second start finds it released");
        assertTrue(reserves.report().endsWith(":0"));

        available = 61L << 20;
        reserves.tick();
        assertFalse(Reserve.isReleased(folder.toString()), "producers are admitted from the first chunk on");
        start();
        assertEquals(List.of(), List.of(folder.toFile().list()), "an unfinished one is deleted at a start");
        for (int tick = 0; tick < 3; tick++) {
            reserves.tick();
        }
        assertEquals(20 << 20, size());
        wanted = 0L;
        reserves.tick();
        assertEquals(-1, size());
    }

    private static int deflated(byte[] bytes) {
        Deflater deflater = new Deflater();
        deflater.setInput(bytes);
        deflater.finish();
        return deflater.deflate(new byte[2 * bytes.length]);
    }

    /** What can't be written or deleted is told once, counted, and tried again after a minute. */
    @Test
    void aFailureIsToldOnce() throws IOException {
        // A folder with that name can be neither replaced nor truncated, even by root.
        Files.createDirectories(file().resolve("in the way"));
        Reserves reserves = reserves();
        for (int tick = 0; tick < 600; tick++) {
            reserves.tick();
        }
        assertEquals(1, reserves.failing());
        assertEquals(1, lines.count("can't be made or deleted"));
        available = 0;
        start();
        assertEquals(1, lines.count("can't be released"));
        available = TOTAL;
        Files.delete(file().resolve("in the way"));
        for (int tick = 0; tick < 300; tick++) {
            reserves.tick();
        }
        assertEquals(0, reserves.failing());
        assertEquals(20 << 20, size());
    }
}
