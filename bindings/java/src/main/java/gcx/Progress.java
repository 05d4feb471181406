package gcx;

/** Is told how far a call is. */
@FunctionalInterface
public interface Progress {
  /**
   * Is called in the thread that made the call, which holds no lock of gcx: it may call gcx, also
   * to give the call up. What it throws gives the rest up, and the call throws it.
   *
   * @param done how many are done
   * @param count how many there are
   */
  void made(int done, int count);
}
