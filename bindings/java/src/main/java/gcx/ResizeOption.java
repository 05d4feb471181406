package gcx;

import java.util.List;

/** How a change is made. */
public enum ResizeOption {
  /**
   * Later work starts at once: on those of the new SMs that are free by then, where a context of
   * those is kept, else on those that the lease had. A stream joins the others when they are free
   * and it is used again. Without this, later work waits for the former holders' on SMs that are
   * new.
   */
  AT_ONCE;

  static int flags(ResizeOption... options) {
    return List.of(options).contains(AT_ONCE)
        ? Functions.GCX_RESIZE_AT_ONCE
        : Functions.GCX_RESIZE_DEFAULT;
  }
}
