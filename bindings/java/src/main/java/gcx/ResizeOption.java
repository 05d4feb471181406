package gcx;

import java.util.List;

/** Options of a resize. */
public enum ResizeOption {
  /**
   * Streams of a lease whose new SMs contain its old ones stay on the old SMs until all new ones
   * are free, and move at their next use. A lease that loses SMs moves at once. Without this
   * option, later work on new SMs waits for the work of their former owners.
   */
  DEFERRED;

  static int flags(ResizeOption... options) {
    return List.of(options).contains(DEFERRED) ? Raw.GCX_RESIZE_DEFERRED : Raw.GCX_RESIZE_DEFAULT;
  }
}
