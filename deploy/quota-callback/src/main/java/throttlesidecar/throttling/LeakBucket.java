package throttlesidecar.throttling;

/**
 * What some clients may still leak: a token bucket of bytes.
 *
 * <p>It is full at first. A request passes while it is full, however large it is, and what has landed
 * is taken from it then: that leaves a debt, which is repaid at the bucket's rate. So in the long run
 * no more passes than the rate, whatever the sizes. Between the admission of a request and its
 * landing the bucket is reserved, or else a hundred connections would pass at once.
 *
 * <p>Example: at 20 kB/s a request of 1 MB passes, and the next one 50 s after it has landed.
 */
final class LeakBucket {
    /** For a request that never lands, as one that fails: a request that lands takes less. */
    static final long RESERVED_NANOS = 5_000_000_000L;

    private static final double NANOS_PER_S = 1e9;

    // All guarded by this.
    private double debt;
    private long atNanos;
    private boolean isReserved;
    private long reservedAtNanos;

    LeakBucket(long nowNanos) {
        atNanos = nowNanos;
    }

    /**
     * Admits a request, if the bucket is full and nobody has reserved it.
     *
     * @param bytesPerSecond the rate at which a debt is repaid, more than 0.
     */
    synchronized boolean reserve(double bytesPerSecond, long nowNanos) {
        repay(bytesPerSecond, nowNanos);
        boolean reserved = isReserved && nowNanos - reservedAtNanos < RESERVED_NANOS;
        if (debt > 0.0 || reserved) {
            return false;
        }
        isReserved = true;
        reservedAtNanos = nowNanos;
        return true;
    }

    /** The request that was admitted is not sent on. */
    synchronized void cancel() {
        isReserved = false;
    }

    /** Takes what has landed, whoever sent it. */
    synchronized void take(double bytes, double bytesPerSecond, long nowNanos) {
        repay(bytesPerSecond, nowNanos);
        debt += bytes;
        isReserved = false;
    }

    private void repay(double bytesPerSecond, long nowNanos) {
        debt = Math.max(0.0, debt - bytesPerSecond * Math.max(0L, nowNanos - atNanos) / NANOS_PER_S);
        atNanos = nowNanos;
    }
}
