import gcx.Device;
import gcx.Lease;
import gcx.LeaseRequest;
import gcx.LeaseSize;
import gcx.LiveLease;
import gcx.Stream;
import java.time.Duration;
import java.util.List;

/**
 * Decode next to prefill: each step resizes two leases, and their streams follow.
 *
 * <pre>java -cp gcx.jar examples/java/Leases.java</pre>
 *
 * Without a GPU, set {@code GCX_DRIVER=sim:h100@13.0}.
 */
public final class Leases {
  private Leases() {}

  /** Returns how many SMs decode needs for a number of requests. */
  private static int policy(int requests) {
    return requests > 100 ? 64 : 32;
  }

  /** Stands for a step of the program, which reads the native stream each time. */
  private static void step(String name, Stream stream) {
    // stream.nativeHandle() is the cudaStream_t to launch kernels in.
    System.out.printf("%s runs on %d SMs%n", name, stream.probeSms().length);
  }

  /**
   * Runs the program.
   *
   * @param arguments none
   */
  public static void main(String[] arguments) {
    Device device = new Device(0);
    LeaseRequest first =
        LeaseRequest.of(32).withName("decode").withTimeout(Duration.ofSeconds(10));
    try (Lease decode = device.acquire(first);
        Lease prefill = device.acquire(LeaseRequest.rest().withName("prefill"))) {
      Lease.prepare(List.of(new LeaseSize(decode, 64), LeaseSize.rest(prefill)));
      for (int requests : new int[] {10, 500, 20}) {
        Lease.resize(
            List.of(new LeaseSize(decode, policy(requests)), LeaseSize.rest(prefill)));
        step("decode", decode.stream());
        step("prefill", prefill.stream());
      }
      for (LiveLease live : Lease.live()) {
        System.out.printf("%s has %s%n", live.name(), live.sms());
      }
    }
  }
}
