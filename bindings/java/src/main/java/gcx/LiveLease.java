package gcx;

import java.util.OptionalInt;

/**
 * A lease of the process, or a request that waits to become one.
 *
 * @param id as in {@link LeaseInfo#id}
 * @param device the device's number
 * @param family the family of its atoms
 * @param isShared whether others that are shared may have its SMs too
 * @param ownQueues whether it insisted on queues of its own
 * @param smCount its SMs; of one that waits those it asked for; empty: the rest
 * @param exclusiveSmCount of these, those that are its alone
 * @param streamCount its streams
 * @param waits whether it has nothing yet, and waits
 * @param name its name; empty if it has none
 * @param sms its SMs; of one that waits 0 SMs
 */
public record LiveLease(
    long id,
    int device,
    SmFamily family,
    boolean isShared,
    boolean ownQueues,
    OptionalInt smCount,
    int exclusiveSmCount,
    int streamCount,
    boolean waits,
    String name,
    SmResource sms) {}
