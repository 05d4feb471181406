package gcx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Kernels that record the SMs they run on, and graphs of them; see src/test/c/work.c. */
final class Work {
  static final int BLOCK = 1024;
  private static final int MAX_SMS = 1024;

  static {
    System.load(System.getProperty("gcx.work"));
    open(Gcx.driver().library().getBytes(StandardCharsets.UTF_8));
    IntStream.range(0, 4).forEach(Work::recorded);
  }

  private Work() {}

  private static native void open(byte[] library);

  /** Returns the kernel's CUfunction. */
  static native long kernel();

  /** Returns a CUstream of device 0's primary context. */
  static native long plain();

  static native long counts(int slot);

  private static native long capture(long[] streams, int blocks);

  private static native int[] recorded(int slot);

  /** Destroys a CUgraph. */
  static native void destroy(long graph);

  /** Captures a CUgraph of a kernel in each stream; the one at index n records in slot n. */
  static long captured(int blocks, Stream... streams) {
    long[] handles = Arrays.stream(streams).mapToLong(Stream::nativeHandle).toArray();
    return capture(streams.length == 0 ? new long[] {plain()} : handles, blocks);
  }

  /** Returns the arguments of a kernel that records in a slot. */
  static ByteBuffer arguments(int slot) {
    return ByteBuffer.allocateDirect(16)
        .order(ByteOrder.nativeOrder())
        .putLong(counts(slot))
        .putInt(MAX_SMS)
        .putInt(300_000)
        .flip();
  }

  /** Returns the SMs that were recorded in a slot since the last call. */
  static int[] seen(int slot) {
    int[] counts = recorded(slot);
    return IntStream.range(0, counts.length).filter(sm -> counts[sm] > 0).toArray();
  }

  /** Returns the number of blocks that recorded in a slot since the last call. */
  static int blocks(int slot) {
    return IntStream.of(recorded(slot)).sum();
  }
}
