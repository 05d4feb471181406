package gcx;

/**
 * A lease.
 *
 * @param device the device's number
 * @param family the family of its atoms
 * @param isShared whether others that are shared may have its SMs too
 * @param ownQueues whether it insisted on queues of its own
 * @param smCount SMs that it has now
 * @param exclusiveSmCount of these, those that are its alone
 * @param streamCount its streams
 * @param id never used twice in a process
 * @param changes how often its SMs have changed
 * @param name its name; empty if it has none
 */
public record LeaseInfo(
    int device,
    SmFamily family,
    boolean isShared,
    boolean ownQueues,
    int smCount,
    int exclusiveSmCount,
    int streamCount,
    long id,
    long changes,
    String name) {}
