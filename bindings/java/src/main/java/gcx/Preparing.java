package gcx;

/** A call that tells its progress, for the library. */
record Preparing(Progress progress, Wait call) {
  /** What the progress calls may wait too, and be what an interruption ended in place of this. */
  void tell(int done, int count) {
    progress.made(done, count);
    if (Thread.currentThread().isInterrupted()) {
      call.giveUp();
    }
  }
}
