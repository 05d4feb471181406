package gcx;

import java.time.Instant;
import java.util.List;
import java.util.UUID;

/**
 * A hold.
 *
 * @param family the family of its atoms
 * @param smCount SMs that it has
 * @param deviceSmCount the SMs of the device
 * @param joined whether it came by {@link Hold#join}
 * @param simulated whether no GPU is involved
 * @param lost whether somebody removed the hold's file or moved its folder, so that others may be
 *     given its SMs
 * @param mps as the process saw it that took the hold
 * @param mpsThreadPercentage the same, as in {@link MpsInfo#threadPercentage}
 * @param id a random number, which tells it from all others
 * @param since when it was taken
 * @param atoms the numbers of its atoms
 * @param deviceUuid the same of a device in all processes
 * @param name any text: escape it where it is shown
 */
public record HoldInfo(
    SmFamily family,
    int smCount,
    int deviceSmCount,
    boolean joined,
    boolean simulated,
    boolean lost,
    MpsState mps,
    double mpsThreadPercentage,
    long id,
    Instant since,
    List<Integer> atoms,
    UUID deviceUuid,
    String name) {}
