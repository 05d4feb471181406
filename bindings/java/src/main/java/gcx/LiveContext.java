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
 * @param sms its SMs
 */
public record LiveContext(
    long id,
    int device,
    int smCount,
    int handleCount,
    int streamCount,
    boolean isPrivate,
    SmResource sms) {}
