package gcx;

/**
 * A context.
 *
 * @param device the device's number
 * @param smCount its SMs
 * @param streamCount live streams of its green context, those of other contexts over it too
 * @param id the same of two contexts exactly if they share a green context; never used twice
 */
public record ContextInfo(int device, int smCount, int streamCount, long id) {}
