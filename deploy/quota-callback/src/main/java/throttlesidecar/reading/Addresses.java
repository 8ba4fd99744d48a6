package throttlesidecar.reading;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The addresses of a host, by a look-up that the caller need not wait for to its end: a resolver
 * without a name server takes half a minute and more. There is one look-up at a time, and whoever
 * asks meanwhile waits for the same.
 */
final class Addresses {

    /** As {@link InetAddress#getAllByName}. */
    interface Resolver {
        InetAddress[] of(String host) throws UnknownHostException;
    }

    private final String host;
    private final Resolver resolver;
    private CompletableFuture<InetAddress[]> pending;

    Addresses(String host, Resolver resolver) {
        this.host = host;
        this.resolver = resolver;
    }

    /**
     * All of them, in the resolver's order.
     *
     * @throws IOException there are none, or none are known in time.
     */
    InetAddress[] within(long timeoutMs) throws IOException {
        CompletableFuture<InetAddress[]> found = lookUp();
        try {
            return found.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            throw new IOException("no address of " + host + " within " + timeoutMs + " ms", late);
        } catch (ExecutionException error) {
            throw new IOException(error.getCause().toString(), error);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", ended);
        }
    }

    private synchronized CompletableFuture<InetAddress[]> lookUp() {
        if (pending == null || pending.isDone()) {
            CompletableFuture<InetAddress[]> found = new CompletableFuture<>();
            Thread thread = new Thread(() -> resolve(found), "throttle-sidecar-resolver");
            thread.setDaemon(true);
            thread.start();
            pending = found;
        }
        return pending;
    }

    private void resolve(CompletableFuture<InetAddress[]> found) {
        try {
            found.complete(resolver.of(host));
        } catch (UnknownHostException | RuntimeException error) {
            found.completeExceptionally(error);
        }
    }
}
