package gcx;

import java.time.Instant;

/**
 * A process that publishes its leases.
 *
 * @param process a random number, which tells it from all others
 * @param since when it began to publish
 * @param pid as the process itself sees it; other containers may not
 * @param simulated whether no GPU is involved
 * @param driverVersion of its driver: 13000 is CUDA 13.0
 * @param deviceCount its devices
 * @param leaseCount its leases
 * @param unlistedCount of these, beyond the 512 that are published
 * @param name whatever it calls itself: escape it where it is shown
 */
public record PublishedProcess(
    long process,
    Instant since,
    int pid,
    boolean simulated,
    int driverVersion,
    int deviceCount,
    int leaseCount,
    int unlistedCount,
    String name) {}
