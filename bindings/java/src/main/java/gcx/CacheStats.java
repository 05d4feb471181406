package gcx;

import java.time.Duration;

/**
 * The green contexts that gcx has, since the driver was opened.
 *
 * @param limit how many without context or stream are kept
 * @param inUse those with a context or stream
 * @param kept those without
 * @param hits contexts given from kept ones or ones in use
 * @param misses green contexts made
 * @param evicted destroyed by the limits and by {@link Cache#trim}
 * @param lost dead by a reset of the device
 * @param prepared made ahead of time, of those made
 * @param making how long the driver was making them, all together
 * @param longestMaking of the one that took longest
 * @param bytesInUse device memory that those in use hold, as measured, all devices together
 * @param bytesKept what the kept ones hold
 * @param memoryLimit what the kept ones may hold on each device; {@link Cache#NO_MEMORY_LIMIT}
 * @param keptStreams streams that were closed, of all contexts
 */
public record CacheStats(
    int limit,
    int inUse,
    int kept,
    long hits,
    long misses,
    long evicted,
    long lost,
    long prepared,
    Duration making,
    Duration longestMaking,
    long bytesInUse,
    long bytesKept,
    long memoryLimit,
    int keptStreams) {}
