package gcx;

/**
 * Whether a device is shared by way of MPS.
 *
 * @param state what the driver says of contexts of this process
 * @param threadPercentage CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of the environment, which limits this
 *     process under MPS; 0: it isn't set, or holds something else
 */
public record MpsInfo(MpsState state, double threadPercentage) {}
