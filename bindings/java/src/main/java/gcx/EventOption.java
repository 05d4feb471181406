package gcx;

import java.util.List;

/** What an event can do beside order. */
public enum EventOption {
  /** It takes times, for {@link Event#millisecondsSince}; costs more. */
  TIMING,
  /** Threads that wait for it sleep instead of spinning, and wake a little later. */
  BLOCKING;

  static int flags(EventOption... options) {
    int flags = 0;
    for (EventOption option : List.of(options)) {
      flags |= option == TIMING ? Raw.GCX_EVENT_TIMING : Raw.GCX_EVENT_BLOCKING_SYNC;
    }
    return flags;
  }
}
