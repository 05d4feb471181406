package gcx;

import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.UUID;

/**
 * A hold of any process, or a request that waits to become one.
 *
 * @param id as in {@link HoldInfo#id}
 * @param since when it was taken, or the wait began
 * @param until of one that waits: when it gives up; empty: never
 * @param pid the process that took it while that keeps it, then another one that does; 0: none is visible here
 * @param user the number of the user whose file it is
 * @param simulated whether no GPU is involved
 * @param waits whether it has nothing yet, and waits
 * @param family the family of its atoms
 * @param smCount its SMs; of one that waits those it asked for; empty: the rest
 * @param deviceSmCount the SMs of the device
 * @param atomCount the atoms of the family, on that device
 * @param atomSmCount SMs of each atom but the last
 * @param lastAtomSmCount SMs of the last atom
 * @param mps as the process saw it that took the hold
 * @param mpsThreadPercentage the same, as in {@link MpsInfo#threadPercentage}
 * @param parent the {@link #id} of the hold that it is a part of, which may have ended; empty: of
 *     the device
 * @param atoms the numbers of its atoms
 * @param deviceUuid the same of a device in all processes
 * @param name any text: escape it where it is shown
 * @param processName any text: escape it where it is shown
 * @param deviceName any text: escape it where it is shown
 */
public record LiveHold(
    long id,
    Instant since,
    Optional<Instant> until,
    int pid,
    long user,
    boolean simulated,
    boolean waits,
    SmFamily family,
    OptionalInt smCount,
    int deviceSmCount,
    int atomCount,
    int atomSmCount,
    int lastAtomSmCount,
    MpsState mps,
    double mpsThreadPercentage,
    OptionalLong parent,
    List<Integer> atoms,
    UUID deviceUuid,
    String name,
    String processName,
    String deviceName) {}
