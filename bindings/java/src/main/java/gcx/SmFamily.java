package gcx;

/** How the atoms of an SM resource were made: what the driver promises of them. */
public enum SmFamily {
  /** Not an SM resource; of a {@link LeaseRequest} that names none. */
  NONE(FunctionsConstants.GCX_SM_FAMILY_NONE),
  /** The default. An H100 has 15 groups of 8 SMs and an odd one of 12. */
  COSCHEDULED(FunctionsConstants.GCX_SM_FAMILY_COSCHEDULED),
  /** Any even count on an H100; thread block clusters of up to 2. */
  FINE(FunctionsConstants.GCX_SM_FAMILY_FINE),
  /** Groups that the driver picks for large clusters. */
  MAX_CLUSTER(FunctionsConstants.GCX_SM_FAMILY_MAX_CLUSTER),
  /** From CUDA 13.1 on: groups of a split with coscheduled counts; they can't be split. */
  STRUCTURED(FunctionsConstants.GCX_SM_FAMILY_STRUCTURED),
  /** From CUDA 13.1 on: counts of a stream that others made, without atoms. */
  FOREIGN(FunctionsConstants.GCX_SM_FAMILY_FOREIGN);

  /** The number in gcx.h. */
  final int number;

  SmFamily(int number) {
    this.number = number;
  }

  static SmFamily of(int number) {
    for (SmFamily value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a SmFamily that this package doesn't know: " + number);
  }
}
