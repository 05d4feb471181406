package gcx;

import java.util.List;

/** Options of a split, which has at most one family. */
public enum SplitOption {
  /** Uses the family {@link SmFamily#FINE}. */
  FINE,
  /** Uses the family {@link SmFamily#MAX_CLUSTER}. */
  MAX_CLUSTER,
  /** Refuses counts that would be rounded up. */
  EXACT,
  /** Uses only SMs that no {@link Lease} has. */
  EXCLUDE_LEASED,
  /** Uses only atoms without {@link Device#sharedSms}; requires mapped families. */
  EXCLUDE_SHARED;

  static int flags(SplitOption... options) {
    int flags = Raw.GCX_SPLIT_DEFAULT;
    for (SplitOption option : List.of(options)) {
      flags |=
          switch (option) {
            case FINE -> Raw.GCX_SPLIT_IGNORE_SM_COSCHEDULING;
            case MAX_CLUSTER -> Raw.GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
            case EXACT -> Raw.GCX_SPLIT_EXACT;
            case EXCLUDE_LEASED -> Raw.GCX_SPLIT_EXCLUDE_LEASED;
            case EXCLUDE_SHARED -> Raw.GCX_SPLIT_EXCLUDE_SHARED;
          };
    }
    return flags;
  }
}
