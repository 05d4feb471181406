package gcx;

import java.time.Duration;

/**
 * The green contexts that gcx has, since the driver was opened.
 *
 * @param limit how many without context or stream are kept on each device
 * @param inUse those with a context or stream
 * @param kept those without
 * @param hits contexts given from kept ones or ones in use
 * @param misses green contexts made
 * @param evicted destroyed by the limit and by {@link Cache#trim}
 * @param lost dead by a reset of the device
 * @param prepared made ahead of time, of those made
 * @param making how long the driver was making them, all together
 * @param longestMaking of the one that took longest
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
    int keptStreams) {}
