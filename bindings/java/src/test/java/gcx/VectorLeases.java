package gcx;

import java.util.ArrayList;
import java.util.List;

/** The steps of leases. */
final class VectorLeases {
  private VectorLeases() {}

  /** Whether the operation is one of these. */
  static boolean give(VectorStep step, String operation) {
    switch (operation) {
      case "lease" -> acquire(step);
      case "resize" -> {
        String list = step.text();
        String flags = step.text();
        List<LeaseSize> sizes = sizes(step, list);
        if (VectorWords.isNumber(flags)) {
          Functions.gcx_lease_resize(sizes, Integer.parseUnsignedInt(flags));
        } else {
          Lease.resize(sizes, VectorWords.resizeOptions(flags));
        }
        step.give(
            VectorWords.list(sizes.stream().map(size -> String.valueOf(size.lease().smCount()))));
      }
      case "prepare" -> Lease.prepare(sizes(step, step.text()));
      case "hand-over" -> {
        Lease from = (Lease) step.object();
        Lease to = (Lease) step.object();
        String flags = step.text();
        if (VectorWords.isNumber(flags)) {
          Functions.gcx_lease_hand_over(from, to, Integer.parseUnsignedInt(flags));
        } else {
          from.handOver(to, VectorWords.resizeOptions(flags));
        }
        step.give(to.smCount());
      }
      case "held" -> {
        Lease of = (Lease) step.object();
        String name = step.text();
        SmResource held = of.sms();
        step.give(held.smCount());
        step.keep(name, held);
      }
      case "alone" -> step.give(((Lease) step.object()).info().exclusiveSmCount());
      case "leases" -> {
        int device = step.number();
        List<LiveLease> live = device == -1 ? Lease.live() : Lease.live(new Device(device));
        step.give(
            VectorWords.list(
                live.stream()
                    .map(
                        one ->
                            one.smCount().orElseThrow()
                                + "/"
                                + one.streamCount()
                                + "/"
                                + (one.isShared() ? 1 : 0))));
      }
      default -> {
        return false;
      }
    }
    return true;
  }

  private static void acquire(VectorStep step) {
    Device device = step.device();
    long count = VectorWords.count(step.text());
    String flags = step.text();
    String family = step.text();
    long least = Integer.toUnsignedLong(step.number());
    long alone = Integer.toUnsignedLong(step.number());
    String name = step.text();
    if (VectorWords.isNumber(flags) || VectorWords.isNumber(family)) {
      int number =
          VectorWords.isNumber(family)
              ? Integer.parseInt(family)
              : VectorWords.family(family).number;
      Functions.gcx_lease_acquire(
          device.ordinal(),
          (int) count,
          VectorWords.isNumber(flags) ? Integer.parseUnsignedInt(flags) : 0,
          number,
          (int) least,
          (int) alone,
          0,
          null,
          name);
      throw new IllegalStateException("a lease that nobody knows was made");
    }
    LeaseRequest request =
        new LeaseRequest(
            count,
            least,
            flags.equals("shared"),
            alone,
            false,
            VectorWords.family(family),
            java.time.Duration.ZERO,
            null,
            name);
    Lease made = device.acquire(request);
    step.give(made.smCount());
    step.keep(name, made);
  }

  private static List<LeaseSize> sizes(VectorStep step, String list) {
    List<LeaseSize> sizes = new ArrayList<>();
    for (String item : VectorWords.items(list)) {
      String[] parts = item.split("/");
      sizes.add(new LeaseSize((Lease) step.find(parts[0]), VectorWords.count(parts[1])));
    }
    return sizes;
  }
}
