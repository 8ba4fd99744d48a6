package throttlesidecar;

import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The one thread that follows the sidecar and applies what it says; a second one waits for answers,
 * so that validities end and settings change while an answer is outstanding.
 *
 * <p>It outlives whatever goes wrong within it: a broker whose follower has died would be
 * throttled, or not, for ever.
 */
final class Follower implements AutoCloseable {
    private static final long END_MS = 1_000;
    private static final long BACKOFF_AFTER_BUG_MS = 500;

    private final Following following;
    private final Consumer<Factors> apply;
    private final Supplier<Map<String, String>> reportHeaders;
    private final Moments moments;
    private final Journal journal;
    private final BlockingQueue<Runnable> inbox = new LinkedBlockingQueue<>();
    private final ExecutorService asker =
            Executors.newCachedThreadPool(daemons("throttle-sidecar-question"));
    private final Thread thread = daemons("throttle-sidecar-follower").newThread(this::run);
    private SidecarClient client;
    private long asked;
    private boolean hadBug;
    private volatile boolean closed;

    /**
     * Follows from {@link #start()} on.
     *
     * @param terms at first.
     * @param client asks the sidecar.
     * @param apply makes factors count; called by the follower's thread alone.
     * @param reportHeaders what each question says of this broker; see {@link SidecarClient#ask}.
     */
    Follower(
            Terms terms,
            SidecarClient client,
            Consumer<Factors> apply,
            Supplier<Map<String, String>> reportHeaders,
            Moments moments,
            Journal journal) {
        this.following = new Following(terms, journal, moments.nanos());
        this.client = client;
        this.apply = apply;
        this.reportHeaders = reportHeaders;
        this.moments = moments;
        this.journal = journal;
    }

    void start() {
        thread.start();
    }

    /**
     * Goes by other settings, within milliseconds, whatever is being waited for.
     *
     * @param newClient that of before, which is closed then, or another.
     * @param sameSidecar as in {@link Following#adopt}.
     */
    void adopt(Terms terms, SidecarClient newClient, boolean sameSidecar) {
        inbox.add(
                () -> {
                    client.close();
                    client = newClient;
                    asked++;
                    following.adopt(terms, sameSidecar, moments.nanos());
                });
    }

    /** How long ago the sidecar was heard, ms; -1 when it never was. */
    long ageMs() {
        return following.ageMs(moments.nanos());
    }

    /** How many questions were not answered as they should be. */
    long failures() {
        return following.failures();
    }

    /** Nothing is applied any more when this returns. */
    @Override
    public void close() {
        closed = true;
        inbox.add(() -> {});
        try {
            thread.join(END_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        asker.shutdownNow();
    }

    private void run() {
        while (!closed) {
            try {
                step();
                await();
                hadBug = false;
            } catch (InterruptedException ended) {
                // Nobody has a reason to, and the follower has to go on: close() says when to end.
                journal.warn("The quota callback's follower was interrupted, and goes on");
            } catch (RuntimeException | Error bug) {
                backOffAfter(bug);
            }
        }
        client.close();
    }

    private void step() {
        Factors factors = following.decide(moments.nanos());
        if (factors != null) {
            apply.accept(factors);
        }
        Following.Question question = following.question(moments.nanos());
        if (question != null) {
            ask(question, ++asked, client, reportHeaders.get());
        }
    }

    private void await() throws InterruptedException {
        long now = moments.nanos();
        Runnable message = inbox.poll(following.nextNanos(now) - now, TimeUnit.NANOSECONDS);
        if (message != null) {
            message.run();
        }
    }

    private void backOffAfter(Throwable bug) {
        following.applyAgain();
        if (!hadBug) {
            journal.warn("The quota callback's follower goes on after " + bug);
        }
        hadBug = true;
        try {
            TimeUnit.MILLISECONDS.sleep(BACKOFF_AFTER_BUG_MS);
        } catch (InterruptedException ended) {
            // As above.
        }
    }

    private void ask(
            Following.Question question, long id, SidecarClient of, Map<String, String> headers) {
        asker.execute(
                () -> {
                    Answer answer;
                    try {
                        answer = of.ask(question.etag, question.waitS, headers);
                    } catch (RuntimeException | Error bug) {
                        answer = Answer.failed("it could not be asked: " + bug);
                    }
                    Answer received = answer;
                    inbox.add(
                            () -> {
                                if (id == asked) {
                                    following.onAnswer(received, moments.nanos());
                                }
                            });
                });
    }

    private static ThreadFactory daemons(String name) {
        return task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }
}
