package gcx;

import java.util.List;

/**
 * What one group of a split is to be. The count alone works on every driver; any other field makes
 * the whole split a structured one, from CUDA 13.1 on, with CUDA's own rules, which round nothing.
 *
 * @param smCount SMs, up to 2^32 - 1; {@link #REST} takes what the other groups leave
 * @param coscheduledSmCount from CUDA 13.1 on: SMs that are coscheduled; 0 is the default
 * @param preferredCoscheduledSmCount from CUDA 13.1 on: SMs, where possible
 * @param flags {@link #BACKFILL}, {@link #LOCALITY_DOMAIN_ID}, {@link
 *     #LOCALITY_DOMAIN_SUPPLEMENTAL_SMS}, joined by |
 * @param localityDomainId from CUDA 13.4 on: with {@link #LOCALITY_DOMAIN_ID} in the flags
 */
public record SmRequest(
    long smCount,
    long coscheduledSmCount,
    long preferredCoscheduledSmCount,
    int flags,
    int localityDomainId) {
  /**
   * As a count: what the other groups leave, or all SMs that can be had. {@link #rest} and its like
   * make requests of it. A count of 0 is refused.
   */
  public static final long REST = 0xffff_ffffL;

  /** Flag, from CUDA 13.1 on: SMs that fit no coscheduled group may fill the count. */
  public static final int BACKFILL = Raw.GCX_SM_REQUEST_BACKFILL;

  /** Flag, from CUDA 13.4 on: the SMs are of one locality domain. */
  public static final int LOCALITY_DOMAIN_ID = Raw.GCX_SM_REQUEST_LOCALITY_DOMAIN_ID;

  /** Flag, from CUDA 13.4 on: SMs of other domains may fill the count. */
  public static final int LOCALITY_DOMAIN_SUPPLEMENTAL_SMS =
      Raw.GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS;

  /** A locality domain of the driver's choice. */
  public static final int LOCALITY_DOMAIN_ID_ANY = Raw.GCX_LOCALITY_DOMAIN_ID_ANY;

  private static final int FIELDS = 5;

  /**
   * A request of these fields.
   *
   * @param smCount SMs, at least 1
   * @param coscheduledSmCount SMs
   * @param preferredCoscheduledSmCount SMs
   * @param flags joined by |
   * @param localityDomainId a domain
   * @throws GcxException.InvalidValue smCount is 0; a count is negative or doesn't fit into 32 bits
   */
  public SmRequest {
    checkWanted(smCount, "SmRequest.rest()");
    check(coscheduledSmCount, preferredCoscheduledSmCount);
  }

  /** Checks a count of which the rest is another word. */
  static void checkWanted(long smCount, String rest) {
    if (smCount == 0) {
      throw new GcxException.InvalidValue(
          "0 is no number of SMs to ask for; " + rest + " takes what the others leave");
    }
    check(smCount);
  }

  static void check(long... counts) {
    for (long count : counts) {
      if (count < 0 || count > REST) {
        throw new GcxException.InvalidValue(count + " is no number of SMs");
      }
    }
  }

  /**
   * A group of so many SMs, or of the next count that can be given.
   *
   * @param smCount SMs, at least 1
   * @return the request
   * @throws GcxException.InvalidValue the count is less than 1
   */
  public static SmRequest of(long smCount) {
    return new SmRequest(smCount, 0, 0, 0, 0);
  }

  /**
   * A group of what the others leave. Several share it as evenly as can be.
   *
   * @return the request
   */
  public static SmRequest rest() {
    return new SmRequest(REST, 0, 0, 0, 0);
  }

  /**
   * The same with so many of its SMs coscheduled, from CUDA 13.1 on.
   *
   * @param count SMs
   * @return the request
   */
  public SmRequest withCoscheduled(long count) {
    return new SmRequest(smCount, count, preferredCoscheduledSmCount, flags, localityDomainId);
  }

  /**
   * The same with so many of its SMs coscheduled where possible, from CUDA 13.1 on.
   *
   * @param count SMs
   * @return the request
   */
  public SmRequest withPreferredCoscheduled(long count) {
    return new SmRequest(smCount, coscheduledSmCount, count, flags, localityDomainId);
  }

  /**
   * The same with SMs that fit no coscheduled group where others lack, from CUDA 13.1 on.
   *
   * @return the request
   */
  public SmRequest withBackfill() {
    return new SmRequest(
        smCount,
        coscheduledSmCount,
        preferredCoscheduledSmCount,
        flags | BACKFILL,
        localityDomainId);
  }

  /**
   * The same of one locality domain, from CUDA 13.4 on.
   *
   * @param domain the domain, or {@link #LOCALITY_DOMAIN_ID_ANY}
   * @return the request
   */
  public SmRequest withLocalityDomain(int domain) {
    return new SmRequest(
        smCount,
        coscheduledSmCount,
        preferredCoscheduledSmCount,
        flags | LOCALITY_DOMAIN_ID,
        domain);
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
