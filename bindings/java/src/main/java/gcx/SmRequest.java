package gcx;

import java.util.List;

/**
 * One group of a split. The count alone works on every driver. Any other field makes the whole
 * split a structured one, from CUDA 13.1 on, by CUDA's rules, which round nothing.
 *
 * @param smCount SMs, up to 2^32 - 1; {@link #REST} for what the other groups leave
 * @param coscheduledSmCount from CUDA 13.1 on: coscheduled SMs; 0 for the default
 * @param preferredCoscheduledSmCount from CUDA 13.1 on: coscheduled SMs where possible
 * @param flags {@link #BACKFILL}, {@link #LOCALITY_DOMAIN_ID}, {@link
 *     #LOCALITY_DOMAIN_SUPPLEMENTAL_SMS}, joined by |
 * @param localityDomainId from CUDA 13.4 on: used with {@link #LOCALITY_DOMAIN_ID}
 */
public record SmRequest(
    long smCount,
    long coscheduledSmCount,
    long preferredCoscheduledSmCount,
    int flags,
    int localityDomainId) {
  /** A count that stands for what the other groups leave, or for all free SMs. */
  public static final long REST = 0xffff_ffffL;

  /** Flag, from CUDA 13.1 on: SMs outside of coscheduled groups may fill the count. */
  public static final int BACKFILL = Raw.GCX_SM_REQUEST_BACKFILL;

  /** Flag, from CUDA 13.4 on: the SMs are of one locality domain. */
  public static final int LOCALITY_DOMAIN_ID = Raw.GCX_SM_REQUEST_LOCALITY_DOMAIN_ID;

  /** Flag, from CUDA 13.4 on: SMs of other domains may fill the count. */
  public static final int LOCALITY_DOMAIN_SUPPLEMENTAL_SMS =
      Raw.GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS;

  /** Lets the driver choose the locality domain. */
  public static final int LOCALITY_DOMAIN_ID_ANY = Raw.GCX_LOCALITY_DOMAIN_ID_ANY;

  private static final int FIELDS = 5;

  /**
   * Creates a request.
   *
   * @param smCount SMs, at least 1
   * @param coscheduledSmCount SMs
   * @param preferredCoscheduledSmCount SMs
   * @param flags joined by |
   * @param localityDomainId a domain
   * @throws GcxException.InvalidValue smCount is 0; a count is negative or more than 32 bits
   */
  public SmRequest {
    checkRequested(smCount, "SmRequest.rest()");
    check(coscheduledSmCount, preferredCoscheduledSmCount);
  }

  /** Checks a requested count; the message for 0 names the method for the rest. */
  static void checkRequested(long smCount, String rest) {
    if (smCount == 0) {
      throw new GcxException.InvalidValue(
          "the requested number of SMs is 0; " + rest + " takes what the others leave");
    }
    check(smCount);
  }

  static void check(long... counts) {
    for (long count : counts) {
      if (count < 0 || count > REST) {
        throw new GcxException.InvalidValue("invalid number of SMs: " + count);
      }
    }
  }

  /**
   * {@return a group of so many SMs, rounded up to the next possible count}
   *
   * @param smCount SMs, at least 1
   */
  public static SmRequest of(long smCount) {
    return new SmRequest(smCount, 0, 0, 0, 0);
  }

  /** {@return a group of what the others leave; several share it as evenly as possible} */
  public static SmRequest rest() {
    return new SmRequest(REST, 0, 0, 0, 0);
  }

  /**
   * {@return this request with so many coscheduled SMs, from CUDA 13.1 on}
   *
   * @param count SMs
   */
  public SmRequest withCoscheduled(long count) {
    return new SmRequest(smCount, count, preferredCoscheduledSmCount, flags, localityDomainId);
  }

  /**
   * {@return this request with so many coscheduled SMs where possible, from CUDA 13.1 on}
   *
   * @param count SMs
   */
  public SmRequest withPreferredCoscheduled(long count) {
    return new SmRequest(smCount, coscheduledSmCount, count, flags, localityDomainId);
  }

  /** {@return this request with the flag {@link #BACKFILL}, from CUDA 13.1 on} */
  public SmRequest withBackfill() {
    return with(flags | BACKFILL, localityDomainId);
  }

  /**
   * {@return this request in one locality domain, from CUDA 13.4 on}
   *
   * @param domain the domain, or {@link #LOCALITY_DOMAIN_ID_ANY}
   */
  public SmRequest withLocalityDomain(int domain) {
    return with(flags | LOCALITY_DOMAIN_ID, domain);
  }

  private SmRequest with(int newFlags, int domain) {
    return new SmRequest(
        smCount, coscheduledSmCount, preferredCoscheduledSmCount, newFlags, domain);
  }

  static long[] joined(List<SmRequest> requests) {
    long[] fields = new long[requests.size() * FIELDS];
    int next = 0;
    for (SmRequest request : requests) {
      fields[next++] = request.smCount;
      fields[next++] = request.coscheduledSmCount;
      fields[next++] = request.preferredCoscheduledSmCount;
      fields[next++] = request.flags;
      fields[next++] = request.localityDomainId;
    }
    return fields;
  }
}
