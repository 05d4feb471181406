package gcx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Kernels that note their SMs, and graphs captured of them; see src/test/c/work.c. */
final class Work {
  static final int BLOCK = 1024;
  private static final int MOST_SMS = 1024;

  static {
    System.load(System.getProperty("gcx.work"));
    open(Gcx.driver().library().getBytes(StandardCharsets.UTF_8));
    IntStream.range(0, 4).forEach(Work::noted);
  }

  private Work() {}

  private static native void open(byte[] library);

  /** The kernel's CUfunction. */
  static native long kernel();

  /** A CUstream of device 0's primary context. */
  static native long plain();

  static native long counts(int place);

  private static native long capture(long[] streams, int blocks, boolean cooperative);

  private static native int[] noted(int place);

  /** Of a CUgraph. */
  static native void destroy(long graph);

  /** A CUgraph of a kernel in each stream; the one at index n notes at place n. */
  static long captured(int blocks, Stream... streams) {
    return capture(handles(streams), blocks, false);
  }

  /** The same of cooperative kernels. */
  static long cooperative(int blocks, Stream... streams) {
    return capture(handles(streams), blocks, true);
  }

  private static long[] handles(Stream... streams) {
    return streams.length == 0
        ? new long[] {plain()}
        : Arrays.stream(streams).mapToLong(Stream::nativeHandle).toArray();
  }

  /** The kernel's arguments, to note at a place. */
  static ByteBuffer arguments(int place) {
    return ByteBuffer.allocateDirect(16)
        .order(ByteOrder.nativeOrder())
        .putLong(counts(place))
        .putInt(MOST_SMS)
        .putInt(300_000)
        .flip();
  }

  /** The SMs that were noted at the place since the last call. */
  static int[] seen(int place) {
    int[] counts = noted(place);
    return IntStream.range(0, counts.length).filter(sm -> counts[sm] > 0).toArray();
  }

  /** How many blocks have noted at the place since the last call. */
  static int blocks(int place) {
    return IntStream.of(noted(place)).sum();
  }
}
