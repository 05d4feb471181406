package gcx;

/**
 * What is known of a resource. Of other types than SMs, the counts are 0.
 *
 * @param type what it is of
 * @param device the device's number
 * @param family how its atoms were made
 * @param smCount its SMs
 * @param atomCount its atoms
 * @param minPartitionSize SMs: the least that splitting it can give
 * @param coscheduledAlignment SMs: the step of the sizes that splitting it can give, the odd atom
 *     aside
 * @param flags of one structured group: the flags of its request
 * @param localityDomainId valid with {@link SmRequest#LOCALITY_DOMAIN_ID} in the flags
 * @param workqueueScope of a workqueue configuration
 * @param workqueueConcurrencyLimit of a workqueue configuration: the concurrent workloads expected
 */
public record ResourceInfo(
    ResourceType type,
    int device,
    SmFamily family,
    int smCount,
    int atomCount,
    int minPartitionSize,
    int coscheduledAlignment,
    int flags,
    int localityDomainId,
    WorkqueueScope workqueueScope,
    int workqueueConcurrencyLimit) {}
