package gcx;

import java.util.UUID;

/**
 * A device.
 *
 * @param name its name; begins with SIMULATED on the simulated driver
 * @param computeCapabilityMajor 9 of compute capability 9.0
 * @param computeCapabilityMinor 0 of compute capability 9.0
 * @param smCount its SMs
 * @param minPartitionSize SMs: the least that a coscheduled partition has
 * @param coscheduledAlignment SMs: coscheduled partitions come in multiples of this
 * @param localityDomainCount its locality domains; 1 where the driver doesn't tell
 * @param uuid what CUDA tells it by
 */
public record DeviceInfo(
    String name,
    int computeCapabilityMajor,
    int computeCapabilityMinor,
    int smCount,
    int minPartitionSize,
    int coscheduledAlignment,
    int localityDomainCount,
    UUID uuid) {}
