import gcx.Context;
import gcx.Device;
import gcx.GcxException;
import gcx.Split;
import gcx.Stream;
import java.util.Arrays;

/**
 * Splits device 0 into 108 and 24 SMs, shows on which SMs each part's kernels run, and what a split
 * that can't be says.
 *
 * <pre>java -cp gcx.jar Scenario.java</pre>
 */
public final class Scenario {
  private Scenario() {}

  /**
   * Runs it.
   *
   * @param arguments none
   */
  public static void main(String[] arguments) {
    // [scenario]
    Device device = new Device(0);
    Split split = device.sms().split(108, 24);
    try (Context large = Context.create(split.groups().get(0));
        Context small = Context.create(split.groups().get(1));
        Stream decode = large.createStream();
        Stream prefill = small.createStream()) {
      // decode.nativeHandle() is the cudaStream_t to launch kernels in.
      int[] first = decode.probeSms();
      int[] second = prefill.probeSms();
      long both = Arrays.stream(first).filter(sm -> Arrays.binarySearch(second, sm) >= 0).count();
      System.out.printf("%d SMs and %d SMs, %d in both%n", first.length, second.length, both);
    }
    try {
      device.sms().split(140);
    } catch (GcxException.ResourceConfiguration problem) {
      System.out.println(problem.getMessage());
    }
    // [/scenario]
  }
}
