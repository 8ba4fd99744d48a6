package throttlesidecar.throttling;

/**
 * The bytes that a group of clients may still leak, as a token bucket.
 *
 * <p>The bucket is full at first. A request of any size passes while the bucket is full. Once the
 * request has landed, its bytes are taken from the bucket, which leaves a debt that is repaid at the
 * bucket's rate. So in the long run no more than the rate passes, whatever the sizes. Between the
 * admission of a request and its landing, the bucket is reserved; otherwise a hundred connections would
 * pass at once.
 *
 * <p>Example: at 20 kB/s a request of 1 MB passes, and the next one 50 s after it has landed.
 */
final class LeakBucket {
    /** When a reservation ends, for a request that fails; a request that lands takes less time. */
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
     * Admits a request if the bucket is full and not reserved.
     *
     * @param bytesPerSecond the rate at which the debt is repaid, more than 0.
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

    /** Ends the reservation of a request that is not sent on. */
    synchronized void cancel() {
        isReserved = false;
    }

    /** Takes bytes that have landed, from any client of the group. */
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
