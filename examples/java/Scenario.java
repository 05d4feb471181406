import gcx.Context;
import gcx.Device;
import gcx.GcxException;
import gcx.SmResource;
import gcx.Stream;
import java.util.BitSet;
import java.util.List;

/**
 * The scenario of docs/reference/languages.md: partitions of 108 and 24 SMs, probed to be disjoint.
 *
 * <pre>java -cp gcx.jar examples/java/Scenario.java</pre>
 *
 * Without a GPU, set {@code GCX_DRIVER=sim:h100@13.0}.
 */
public final class Scenario {
  private Scenario() {}

  static void scenario() {
    SmResource device = new Device(0).sms();
    List<SmResource> parts = device.split(108, 24).groups();
    BitSet seen = new BitSet();
    try (Context large = Context.create(parts.get(0));
        Context small = Context.create(parts.get(1));
        Stream decode = large.createStream();
        Stream prefill = small.createStream()) {
      int number = 0;
      for (Stream stream : List.of(decode, prefill)) {
        // stream.nativeHandle() is the cudaStream_t to launch kernels in.
        BitSet sms = new BitSet();
        for (int sm : stream.probeSms()) { // a kernel notes where it runs
          sms.set(sm);
        }
        String all = sms.toString().replaceAll("[{},]", "");
        System.out.printf("partition %d runs on %d SMs: %s%n", number++, sms.cardinality(), all);
        if (seen.intersects(sms)) {
          throw new IllegalStateException("an SM is in both partitions");
        }
        seen.or(sms);
      }
    }
    System.out.println("no SM is in both");

    try {
      device.split(140);
      throw new IllegalStateException("140 SMs were given");
    } catch (GcxException.ResourceConfiguration problem) {
      System.out.println("140 SMs: " + problem.getMessage());
    }
  }

  /**
   * Runs the program.
   *
   * @param arguments none
   */
  public static void main(String[] arguments) {
    scenario();
  }
}
