package gcx;

import java.util.List;

/** Options of a preparation. */
public enum PrepareOption {
  /**
   * Prepares contexts of leases, which have balanced workqueues from CUDA 13.1 on. No difference
   * before.
   */
  FOR_LEASES;

  static int flags(PrepareOption... options) {
    return List.of(options).contains(FOR_LEASES) ? Raw.GCX_PREPARE_FOR_LEASES : 0;
  }
}
