package gcx;

/** A preparation that reports its progress, for the library. */
record Preparing(Progress progress, Wait call) {
  /** A wait inside the progress can take the interruption that should have ended this call. */
  void report(int done, int count) {
    progress.made(done, count);
    if (Thread.currentThread().isInterrupted()) {
      call.cancel();
    }
  }
}
