package gcx;

import java.util.List;

/** What is prepared ahead of time. */
public enum PrepareOption {
  /**
   * As leases over these SMs have it: with balanced workqueues, from CUDA 13.1 on; before that the
   * same as without.
   */
  FOR_LEASES;

  static int flags(PrepareOption... options) {
    return List.of(options).contains(FOR_LEASES) ? Raw.GCX_PREPARE_FOR_LEASES : 0;
  }
}
