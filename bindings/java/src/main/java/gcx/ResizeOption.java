package gcx;

import java.util.List;

/** How a change is made. */
public enum ResizeOption {
  /**
   * A lease whose new SMs contain its old ones doesn't wait: its streams stay on the old SMs until
   * all new ones are free, and move when they are used after that. A lease that loses SMs moves
   * now. Without this, later work waits for the former holders' on SMs that are new.
   */
  DEFERRED;

  static int flags(ResizeOption... options) {
    return List.of(options).contains(DEFERRED) ? Raw.GCX_RESIZE_DEFERRED : Raw.GCX_RESIZE_DEFAULT;
  }
}
