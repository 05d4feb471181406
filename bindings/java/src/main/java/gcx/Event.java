package gcx;

/**
 * A point in streams' work, to be waited for. Waiting works across devices.
 *
 * <p>Every method may be called from any thread, at any time.
 */
public final class Event extends Owned {
  private Event(long handle) {
    super(handle, Natives::gcx_event_destroy);
  }

  /**
   * A new event.
   *
   * @param device whose streams are recorded in it
   * @param options what it can do beside order
   * @return the event, to be closed by the caller
   */
  public static Event create(Device device, EventOption... options) {
    return new Event(Functions.gcx_event_create(device.ordinal(), EventOption.flags(options)));
  }

  /**
   * Stands for an event that someone else made, which must live longer. Closing leaves it alone.
   *
   * @param nativeHandle a CUevent, which is a cudaEvent_t
   * @return the event, to be closed by the caller
   */
  public static Event fromNative(long nativeHandle) {
    return new Event(Functions.gcx_event_from_native(nativeHandle));
  }

  /**
   * CUDA's own handle, for any CUDA code, which must not destroy it.
   *
   * @return the CUevent, valid until this is closed
   */
  public long nativeHandle() {
    return nativeOf(this, Functions::gcx_event_native, Functions::gcx_event_query);
  }

  /** Waits in the calling thread for the event's work. */
  public void synchronize() {
    Functions.gcx_event_synchronize(this);
  }

  /**
   * Whether its work has finished. Never waits.
   *
   * @return true if all has, or nothing was ever recorded
   */
  public boolean isDone() {
    return Functions.gcx_event_query(this);
  }

  /**
   * The time between two events' work. Both need {@link EventOption#TIMING}.
   *
   * @param start the earlier event
   * @return milliseconds
   * @throws GcxException.NotReady one has not finished
   * @throws GcxException.InvalidHandle one takes no times or was never recorded, or they are of two
   *     devices
   */
  public float millisecondsSince(Event start) {
    return Functions.gcx_event_get_elapsed(start, this);
  }

  /**
   * Whether it was closed.
   *
   * @return whether using it is an error
   */
  public boolean isClosed() {
    return !isOpen();
  }

  /** Gives it up. Never waits. Closing again does nothing. */
  @Override
  public void close() {
    super.close();
  }

  @Override
  public String toString() {
    return isOpen() ? "event" : "event, closed";
  }
}
