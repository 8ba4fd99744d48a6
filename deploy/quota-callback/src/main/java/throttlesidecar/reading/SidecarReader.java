package throttlesidecar.reading;

import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;
import throttlesidecar.decision.Factors;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.Journal;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.volumes.Volume;
import throttlesidecar.volumes.VolumeLine;

/**
 * The thread that reads the sidecar's decisions and applies them. A second thread waits for answers, so
 * that documents can expire and settings can change while an answer is outstanding.
 *
 * <p>The thread survives every error: if it died, the last factor would apply forever.
 */
public final class SidecarReader implements AutoCloseable {
    private static final long END_MS = 1_000;

    /** Beyond this number, other sidecars' answers and readings of volumes are dropped. */
    private static final int MOST_WAITING = 100;

    private static final Answer NOT_SENT = Answer.failed("it could not be sent");

    private static final long BACKOFF_AFTER_BUG_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private final ReaderState state;
    private final Consumer<Factors> apply;
    private final Supplier<Map<String, String>> reportHeaders;
    private final Map<String, String> brokerHeaders;
    private final Clocks clocks;
    private final Journal journal;
    private final BlockingQueue<Runnable> inbox = new LinkedBlockingQueue<>();
    private final ExecutorService requester =
            Executors.newCachedThreadPool(daemons("throttle-sidecar-request"));
    private final Thread thread = daemons("throttle-sidecar-reader").newThread(this::run);
    private final AtomicBoolean isKeeping = new AtomicBoolean();
    private SidecarClient client;
    private OtherSidecars others;
    private Consumer<DocumentFile.Found> keep = document -> {};

    /** Changes with each request and each change of settings; answers to older requests are ignored. */
    private long requests;

    private boolean hadBug;
    private volatile boolean closed;

    /**
     * A reader that begins with {@link #start()}.
     *
     * @param clients one for each sidecar, the broker's own first.
     * @param apply applies factors; only the reader's thread calls it.
     * @param reportHeaders this broker's report, see {@link SidecarClient#request}.
     * @param brokerHeaders identify this broker to the other sidecars.
     */
    public SidecarReader(
            Settings settings, List<SidecarClient> clients, Consumer<Factors> apply,
            Supplier<Map<String, String>> reportHeaders, Map<String, String> brokerHeaders,
            Faults faults, Clocks clocks, Journal journal) {
        this.state = new ReaderState(settings, faults, journal, clocks.nanos());
        this.apply = apply;
        this.reportHeaders = reportHeaders;
        this.brokerHeaders = brokerHeaders;
        this.clocks = clocks;
        this.journal = journal;
        use(clients);
    }

    /**
     * Before the start, takes the document of the last run and the consumer that keeps later ones.
     *
     * @param found null for none.
     * @param keep keeps a document; on any thread, but one at a time.
     */
    public void keep(DocumentFile.Found found, Consumer<DocumentFile.Found> keep) {
        this.keep = keep;
        if (found != null) {
            state.remember(found.document, found.ageMs, clocks.nanos());
        }
    }

    /** Takes new readings of the broker's own volumes; on any thread. */
    public void see(Map<String, Volume> readings) {
        offer(() -> state.onReadings(readings));
    }

    private void offer(Runnable message) {
        if (inbox.size() < MOST_WAITING) {
            inbox.add(message);
        }
    }

    public void start() {
        others.start();
        thread.start();
    }

    private void use(List<SidecarClient> clients) {
        client = clients.get(0);
        requests++;
        List<SidecarClient> further = clients.subList(1, clients.size());
        others = new OtherSidecars(further, brokerHeaders, (answer, number, by) ->
                offer(() -> {
                    // Answers of sidecars that the settings no longer name are ignored.
                    if (others == by) {
                        state.onOther(number, answer);
                    }
                }));
        state.adoptOthers(further.size());
    }

    /**
     * Adopts other settings within milliseconds, also while an answer is outstanding.
     *
     * @param clients replace the clients in use, which are closed.
     * @param sameSidecar as in {@link ReaderState#adopt}.
     */
    public void adopt(Settings settings, List<SidecarClient> clients, boolean sameSidecar) {
        inbox.add(() -> {
            client.close();
            others.close();
            use(clients);
            state.adopt(settings, sameSidecar, clocks.nanos());
            others.start();
        });
    }

    public long ageMs() {
        return state.ageMs(clocks.nanos());
    }

    public long limitsAgeMs() {
        return state.limitsAgeMs(clocks.nanos());
    }

    public boolean needsTopics(Volume volume) {
        return state.needsTopics(volume);
    }

    /** The limit of the broker's own volumes; null: there is none, or it is not known. */
    public VolumeLine limit() {
        return state.limit();
    }

    public long failures() {
        return state.failures();
    }

    /** After this returns, no factor is applied any more. */
    @Override
    public void close() {
        closed = true;
        inbox.add(() -> {});
        try {
            thread.join(END_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        requester.shutdownNow();
    }

    private void run() {
        while (!closed) {
            try {
                boolean applied = attempt();
                long now = clocks.nanos();
                await(applied ? state.nextNanos(now) : now + BACKOFF_AFTER_BUG_NANOS);
                hadBug &= !applied;
            } catch (Throwable bug) {
                survive(bug);
            }
        }
        client.close();
        others.close();
    }

    /** Does the work that is due. Returns false after a bug, so that settings can still be adopted. */
    private boolean attempt() {
        try {
            Factors factors = state.decide(clocks.nanos());
            if (factors != null) {
                apply.accept(factors);
            }
            keep(state.documentToKeep(clocks.nanos()));
            ReaderState.Request request = state.nextRequest(clocks.nanos());
            if (request != null) {
                send(request, ++requests, client);
            }
            return true;
        } catch (RuntimeException | Error bug) {
            state.applyAgain();
            note(bug);
            return false;
        }
    }

    /** Keeps a document on another thread, since a disk may hang, unless the last one is still written. */
    private void keep(DocumentFile.Found document) {
        if (document != null) {
            requester.execute(() -> {
                if (!isKeeping.getAndSet(true)) {
                    try {
                        keep.accept(document);
                    } finally {
                        isKeeping.set(false);
                    }
                }
            });
        }
    }

    /** Takes one message, if one arrives before the deadline. */
    private void await(long untilNanos) throws InterruptedException {
        Runnable message = inbox.poll(untilNanos - clocks.nanos(), TimeUnit.NANOSECONDS);
        if (message != null) {
            message.run();
        }
    }

    private void note(Throwable bug) {
        if (!hadBug) {
            journal.warn("The quota callback's reader continues after " + bug);
        }
        hadBug = true;
    }

    private void survive(Throwable bug) {
        try {
            TimeUnit.NANOSECONDS.sleep(BACKOFF_AFTER_BUG_NANOS);
            note(bug);
        } catch (Throwable again) {
            // Without memory, not even a note can be made. An interruption does not end the thread either.
        }
    }

    private void send(ReaderState.Request request, long id, SidecarClient of) {
        try {
            Map<String, String> headers = reportHeaders.get();
            requester.execute(() -> {
                Answer answer = of.requestOrFail(request.etag, request.waitS, headers);
                inbox.add(() -> {
                    if (id == requests) {
                        state.onAnswer(answer, clocks.nanos());
                    }
                });
            });
        } catch (RuntimeException | Error bug) {
            state.onAnswer(NOT_SENT, clocks.nanos());
            throw bug;
        }
    }

    private static ThreadFactory daemons(String name) {
        return task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }
}
