package gcx;

/** Whether contexts of a process on a device are shared by way of MPS. */
public enum MpsState {
  /** The driver doesn't tell. */
  UNKNOWN(FunctionsConstants.GCX_MPS_UNKNOWN),
  /** They aren't: processes take turns on the device. */
  OFF(FunctionsConstants.GCX_MPS_OFF),
  /** They are: processes run side by side. */
  ON(FunctionsConstants.GCX_MPS_ON);

  /** The number in gcx.h. */
  final int number;

  MpsState(int number) {
    this.number = number;
  }

  static MpsState of(int number) {
    for (MpsState value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a MpsState that this package doesn't know: " + number);
  }
}
