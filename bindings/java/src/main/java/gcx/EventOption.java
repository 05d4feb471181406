package gcx;

import java.util.List;

/** Options of an event. */
public enum EventOption {
  /** Records time for {@link Event#millisecondsSince}; costs more. */
  TIMING,
  /** Waiting threads sleep instead of spinning, and wake a little later. */
  BLOCKING;

  static int flags(EventOption... options) {
    int flags = 0;
    for (EventOption option : List.of(options)) {
      flags |= option == TIMING ? Raw.GCX_EVENT_TIMING : Raw.GCX_EVENT_BLOCKING_SYNC;
    }
    return flags;
  }
}
