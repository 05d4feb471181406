package gcx;

/**
 * The open driver.
 *
 * @param version of the driver: 13000 is CUDA 13.0
 * @param headerVersion of the CUDA headers that gcx was built with
 * @param simulated whether no GPU is involved
 * @param library what was opened
 */
public record DriverInfo(int version, int headerVersion, boolean simulated, String library) {}
