package gcx;

import java.util.List;
import java.util.OptionalInt;
import java.util.UUID;

/**
 * A lease of a process that publishes, or a request there that waits to become one.
 *
 * @param process as in {@link PublishedProcess#process}
 * @param id as in {@link LeaseInfo#id}, in that process
 * @param changes how often its SMs have changed
 * @param pid as the process itself sees it
 * @param simulated whether no GPU is involved
 * @param device the device's number in that process; the UUID tells the same one in others
 * @param family the family of its atoms
 * @param isShared whether others that are shared may have its SMs too
 * @param ownQueues whether it insisted on queues of its own
 * @param waits whether it has nothing yet, and waits
 * @param smCount its SMs; of one that waits those it asked for; empty: the rest
 * @param exclusiveSmCount of these, those that are its alone
 * @param streamCount its streams
 * @param deviceSmCount the SMs of the device
 * @param atomCount the atoms of the family, on that device
 * @param atomSmCount SMs of each atom but the last
 * @param lastAtomSmCount SMs of the last atom
 * @param exclusiveAtoms the numbers of the atoms that are its alone
 * @param sharedAtoms the numbers of those that others may have too
 * @param deviceUuid the same of a device in all processes
 * @param name any text: escape it where it is shown
 * @param processName any text: escape it where it is shown
 * @param deviceName any text: escape it where it is shown
 */
public record PublishedLease(
    long process,
    long id,
    long changes,
    int pid,
    boolean simulated,
    int device,
    SmFamily family,
    boolean isShared,
    boolean ownQueues,
    boolean waits,
    OptionalInt smCount,
    int exclusiveSmCount,
    int streamCount,
    int deviceSmCount,
    int atomCount,
    int atomSmCount,
    int lastAtomSmCount,
    List<Integer> exclusiveAtoms,
    List<Integer> sharedAtoms,
    UUID deviceUuid,
    String name,
    String processName,
    String deviceName) {}
