package gcx;

import java.util.List;
import java.util.Objects;

/**
 * A lease and its new size.
 *
 * @param lease the lease
 * @param smCount SMs, rounded up to whole atoms; {@link SmRequest#REST} for what the other sizes
 *     and all other leases leave; {@link #PARKED} for none
 */
public record LeaseSize(Lease lease, long smCount) {
  /** In place of a count: the lease has no SMs, and its streams none, until the next resize. */
  public static final long PARKED = -1;

  /**
   * Creates a size.
   *
   * @param lease the lease
   * @param smCount SMs, at least 1, or {@link #PARKED}
   * @throws GcxException.InvalidValue the count is 0, otherwise negative or more than 32 bits
   */
  public LeaseSize {
    Objects.requireNonNull(lease, "lease");
    if (smCount != PARKED) {
      SmRequest.checkRequested(smCount, "LeaseSize.rest");
    }
  }

  /**
   * {@return a size of what the others leave; several such sizes share it as evenly as possible}
   *
   * @param lease the lease
   */
  public static LeaseSize rest(Lease lease) {
    return new LeaseSize(lease, SmRequest.REST);
  }

  /**
   * {@return a size of no SMs: the lease keeps its streams, which throw {@link
   * GcxException.LeaseParked} until it is resized again}
   *
   * @param lease the lease
   */
  public static LeaseSize parked(Lease lease) {
    return new LeaseSize(lease, PARKED);
  }

  /** The caller keeps the leases reachable. */
  static long[] joined(List<LeaseSize> sizes) {
    long[] fields = new long[3 * sizes.size()];
    int next = 0;
    for (LeaseSize size : sizes) {
      boolean parked = size.smCount == PARKED;
      fields[next++] = size.lease.handle();
      fields[next++] = parked ? 0 : size.smCount;
      fields[next++] = parked ? Raw.GCX_SIZE_PARKED : 0;
    }
    return fields;
  }
}
