package gcx;

/** A point in streams' work that other streams and threads can wait for, also on other devices. */
public final class Event extends Owned {
  private Event(long handle) {
    super(handle, Natives::gcx_event_destroy);
  }

  /**
   * Creates an event.
   *
   * @param device the device whose streams are recorded in it
   * @param options what it can do in addition to ordering work
   * @return the event, to be closed by the caller
   */
  public static Event create(Device device, EventOption... options) {
    return new Event(Functions.gcx_event_create(device.ordinal(), EventOption.flags(options)));
  }

  /**
   * Wraps an event of other code, which must outlive it. Closing does not destroy that event.
   *
   * @param nativeHandle a CUevent, which is a cudaEvent_t
   * @return the event, to be closed by the caller
   */
  public static Event fromNative(long nativeHandle) {
    return new Event(Functions.gcx_event_from_native(nativeHandle));
  }

  /** {@return the CUevent, valid until this is closed; other code must not destroy it} */
  public long nativeHandle() {
    return nativeOf(this, Functions::gcx_event_native, Functions::gcx_event_query);
  }

  /** Waits in the calling thread for the event's work. */
  public void synchronize() {
    Functions.gcx_event_synchronize(this);
  }

  /** {@return whether its work has finished, or nothing was ever recorded} Never waits. */
  public boolean isDone() {
    return Functions.gcx_event_query(this);
  }

  /**
   * Returns the time between the work of two events, both created with {@link EventOption#TIMING}.
   *
   * @param start the earlier event
   * @return milliseconds
   * @see Raw#gcx_event_get_elapsed
   */
  public float millisecondsSince(Event start) {
    return Functions.gcx_event_get_elapsed(start, this);
  }
}
