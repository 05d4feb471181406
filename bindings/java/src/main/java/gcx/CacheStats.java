package gcx;

/**
 * The green contexts that gcx has, since the driver was opened.
 *
 * @param limit how many without context or stream are kept
 * @param inUse those with a context or stream
 * @param kept those without
 * @param hits contexts given from kept ones or ones in use
 * @param misses green contexts made
 * @param evicted destroyed by the limit
 * @param lost dead by a reset of the device
 */
public record CacheStats(
    int limit, int inUse, int kept, long hits, long misses, long evicted, long lost) {}
