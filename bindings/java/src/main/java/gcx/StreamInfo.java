package gcx;

/**
 * A stream.
 *
 * @param device the device's number
 * @param priority lower is more urgent
 * @param smCount SMs that its kernels can run on
 * @param contextId {@link ContextInfo#id} of its context; 0 if that isn't gcx's
 */
public record StreamInfo(int device, int priority, int smCount, long contextId) {}
