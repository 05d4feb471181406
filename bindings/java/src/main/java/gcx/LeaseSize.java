package gcx;

import java.util.List;
import java.util.Objects;

/**
 * A lease and its new size.
 *
 * @param lease the lease
 * @param smCount SMs, rounded up to whole atoms; {@link SmRequest#REST} for what the other sizes
 *     and all other leases leave
 */
public record LeaseSize(Lease lease, long smCount) {
  /**
   * Creates a size.
   *
   * @param lease the lease
   * @param smCount SMs, at least 1
   * @throws GcxException.InvalidValue the count is 0, negative or more than 32 bits
   */
  public LeaseSize {
    Objects.requireNonNull(lease, "lease");
    SmRequest.checkRequested(smCount, "LeaseSize.rest");
  }

  /**
   * {@return a size of what the others leave; several such sizes share it as evenly as possible}
   *
   * @param lease the lease
   */
  public static LeaseSize rest(Lease lease) {
    return new LeaseSize(lease, SmRequest.REST);
  }

  /** The caller keeps the leases reachable. */
  static long[] joined(List<LeaseSize> sizes) {
    long[] pairs = new long[2 * sizes.size()];
    int next = 0;
    for (LeaseSize size : sizes) {
      pairs[next++] = size.lease.handle();
      pairs[next++] = size.smCount;
    }
    return pairs;
  }
}
