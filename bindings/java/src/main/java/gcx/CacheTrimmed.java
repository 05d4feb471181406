package gcx;

/**
 * What {@link Cache#trim} came to.
 *
 * @param contexts green contexts destroyed
 * @param streams streams that were closed before, destroyed: with their contexts, and beside
 * @param contextsLeft beyond the number, but a stream that was closed captures in them
 * @param streamsLeft closed, but at work or capturing still
 * @param bytes device memory that is free now and was not before, all devices together; what others
 *     did meanwhile is in it
 */
public record CacheTrimmed(
    int contexts, int streams, int contextsLeft, int streamsLeft, long bytes) {}
