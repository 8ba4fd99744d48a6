package throttlesidecar.reading;

import java.io.IOException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A task that may hang, such as a look-up of a name or the read of a file, on a thread of its own. There
 * is one run at a time: while a run hangs, callers wait for it and begin no other.
 */
final class Bounded<T> {
    private final String name;
    private final Callable<T> task;
    private FutureTask<T> run;

    Bounded(String name, Callable<T> task) {
        this.name = name;
        this.task = task;
    }

    /** The result of the current run, or of a new one; an IOException if it fails or is late. */
    T get(long timeoutMs, String what) throws IOException {
        try {
            return current().get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            throw new IOException("no " + what + " within " + timeoutMs + " ms", late);
        } catch (ExecutionException error) {
            throw new IOException(error.getCause().toString(), error);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", ended);
        }
    }

    private synchronized FutureTask<T> current() {
        if (run == null || run.isDone()) {
            run = new FutureTask<>(task);
            Thread thread = new Thread(run, name);
            thread.setDaemon(true);
            thread.start();
        }
        return run;
    }
}
