package gcx;

/**
 * A green context that is in use.
 *
 * @param id as in {@link ContextInfo#id}
 * @param device the device's number
 * @param smCount its SMs
 * @param handleCount contexts over it
 * @param streamCount its streams
 * @param isPrivate whether nobody shares it
 * @param bytes device memory that it holds, as measured
 * @param sms its SMs
 */
public record LiveContext(
    long id,
    int device,
    int smCount,
    int handleCount,
    int streamCount,
    boolean isPrivate,
    long bytes,
    SmResource sms) {}
