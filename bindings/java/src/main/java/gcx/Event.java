package gcx;

/** A point in streams' work that other streams and threads can wait for, also on other devices. */
public final class Event extends EventMethods {
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
