package gcx;

import java.util.List;

/** How a split is made. Two families at once are refused. */
public enum SplitOption {
  /** In the family {@link SmFamily#FINE}. */
  FINE,
  /** In the family {@link SmFamily#MAX_CLUSTER}. */
  MAX_CLUSTER,
  /** Counts that would have to be rounded up are refused. */
  EXACT,
  /** Of the SMs only what no {@link Lease} has. */
  EXCLUDE_LEASED,
  /** Of the SMs only atoms that hold none of {@link Device#sharedSms}; wants mapped families. */
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
