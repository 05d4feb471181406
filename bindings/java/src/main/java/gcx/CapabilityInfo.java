package gcx;

/**
 * Whether the open driver can do something.
 *
 * @param available whether it can
 * @param requiredVersion the driver's version that can: 13010 is CUDA 13.1
 * @param name what it is, in words
 */
public record CapabilityInfo(boolean available, int requiredVersion, String name) {}
