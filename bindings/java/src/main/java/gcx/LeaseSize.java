package gcx;

import java.util.List;
import java.util.Objects;

/**
 * What a lease is to have after a change.
 *
 * @param lease the lease
 * @param smCount SMs, rounded up to whole atoms; {@link SmRequest#REST} takes what the others of
 *     the change and all other leases leave
 */
public record LeaseSize(Lease lease, long smCount) {
  /**
   * A lease with its count.
   *
   * @param lease the lease
   * @param smCount SMs, at least 1
   * @throws GcxException.InvalidValue the count is 0, negative or doesn't fit into 32 bits
   */
  public LeaseSize {
    Objects.requireNonNull(lease, "lease");
    SmRequest.checkWanted(smCount, "LeaseSize.rest");
  }

  /**
   * So many SMs, or the next count that can be given.
   *
   * @param lease the lease
   * @param smCount SMs, at least 1
   * @return the size
   * @throws GcxException.InvalidValue the count is less than 1
   */
  public static LeaseSize of(Lease lease, long smCount) {
    return new LeaseSize(lease, smCount);
  }

  /**
   * What the others of the change and all other leases leave. Several share it as evenly as can be.
   *
   * @param lease the lease
   * @return the size
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
