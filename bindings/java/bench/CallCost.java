import gcx.Context;
import gcx.Device;
import gcx.Gcx;
import gcx.SmResource;
import gcx.Stream;
import java.util.Arrays;
import java.util.function.IntToDoubleFunction;

/**
 * Compares the cost of calls from Java with the same calls from C and with empty calls through JNI,
 * in one run; run.sh runs it.
 */
public final class CallCost {
  private static final int TIMES = 31;
  private static volatile long sink;

  private CallCost() {}

  private static native int empty();

  private static native long handle(long value, int flags);

  private static native byte[] bytes(byte[] array);

  private static native double versionInC(int rounds);

  private static native double roundInC(int rounds);

  private static double timed(int rounds, Runnable work) {
    long begin = System.nanoTime();
    for (int i = 0; i < rounds; i++) {
      work.run();
    }
    return (System.nanoTime() - begin) / (double) rounds;
  }

  private static double version(int rounds) {
    long begin = System.nanoTime();
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
      sum += Gcx.version();
    }
    sink = sum;
    return (System.nanoTime() - begin) / (double) rounds;
  }

  private static double nothing(int rounds) {
    long begin = System.nanoTime();
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
      sum += empty();
    }
    sink = sum;
    return (System.nanoTime() - begin) / (double) rounds;
  }

  /** Makes the five calls of a round as empty calls with the same parameters. */
  private static void bareRound(byte[] resource) {
    sink = bytes(resource).length;
    sink = handle(1, 0);
    sink = handle(1, 0);
    sink = handle(1, 0);
    sink = handle(1, 0);
  }

  private static void round(SmResource part) {
    try (Context context = Context.create(part);
        Stream stream = context.createStream()) {
      sink = stream.nativeHandle();
    }
  }

  /**
   * Measures and prints the medians.
   *
   * @param arguments the library with the native part
   */
  public static void main(String[] arguments) {
    SmResource part = new Device(0).sms().split(24).groups().get(0);
    round(part);
    System.load(arguments[0]);
    byte[] resource = new byte[128];
    int calls = 1_000_000;
    int rounds = 20_000;
    IntToDoubleFunction[] measured = {
      ignored -> versionInC(calls),
      ignored -> nothing(calls),
      ignored -> version(calls),
      ignored -> roundInC(rounds),
      ignored -> timed(rounds, () -> bareRound(resource)),
      ignored -> timed(rounds, () -> round(part)),
    };
    double[][] all = new double[measured.length][TIMES];
    for (int time = 0; time < TIMES; time++) { // in turns, so that other load affects all
      for (int i = 0; i < measured.length; i++) {
        all[i][time] = measured[i].applyAsDouble(time);
      }
    }
    double[] median = Arrays.stream(all).mapToDouble(CallCost::median).toArray();
    System.out.println("medians of " + TIMES + ", in nanoseconds");
    print("gcx_version", median[0], median[1], median[2]);
    print("a cached context", median[3], median[4], median[5]);
  }

  private static double median(double... times) {
    double[] sorted = times.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private static void print(String what, double inC, double bridge, double inJava) {
    System.out.printf(
        "%-16s C %.1f, empty JNI %.1f, Java %.1f: %.2f of C, %.2f of C and JNI%n",
        what, inC, bridge, inJava, inJava / inC, inJava / (inC + bridge));
  }
}
