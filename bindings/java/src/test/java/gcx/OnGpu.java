package gcx;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;

/** Checks on a GPU, which tests/gpu/run-java.sh runs without JUnit. */
final class OnGpu {
  private static final int ROUNDS = 2000;
  private static int passed;

  private OnGpu() {}

  public static void main(String[] arguments) {
    check("the driver is not simulated", !Gcx.driver().simulated());
    Device device = new Device(0);
    System.out.println(device.info() + ", " + Gcx.driver());
    SmResource all = device.sms();
    Split split = all.split(all.smCount() - 24, 24);
    try (Context large = Context.create(split.groups().get(0));
        Context small = Context.create(split.groups().get(1));
        Stream first = large.createStream();
        Stream second = small.createStream(-1);
        Event start = Event.create(device, EventOption.TIMING);
        Event end = Event.create(device, EventOption.TIMING)) {
      first.record(start);
      BitSet ofFirst = set(first.probeSms());
      BitSet ofSecond = set(second.probeSms());
      first.record(end);
      second.waitFor(end);
      second.synchronize();
      System.out.println("large: " + ofFirst + "\nsmall: " + ofSecond);
      check("the large part has the requested SMs", ofFirst.cardinality() == all.smCount() - 24);
      check("the small part has 24 SMs", ofSecond.cardinality() == 24);
      check("the parts are disjoint", !ofFirst.intersects(ofSecond));
      check("events measure time", end.millisecondsSince(start) > 0);
      check("recorded work is done", end.isDone() && second.isDone());
      device.mapSms(SmFamily.COSCHEDULED);
      check("the map equals the probe", set(split.groups().get(1).smIds()).equals(ofSecond));
      try (Context.Pushed pushed = large.push()) {
        check(
            "the context is current " + pushed,
            Context.current().equals(java.util.Optional.of(large)));
      }
      try (Stream same = Stream.fromNative(second.nativeHandle())) {
        check("a native stream has 24 SMs", same.smCount() == 24);
      }
    }
    leases(device);
    graphs(device);
    costs(split.groups().get(1));
    check("no context is alive", Context.live().equals(List.of()));
    System.out.println(passed + " passed, 0 failed");
  }

  private static void leases(Device device) {
    try (Lease decode = device.acquire(LeaseRequest.of(32).withName("decode"));
        Lease prefill = device.acquire(LeaseRequest.rest().withName("prefill"))) {
      int all = decode.smCount() + prefill.smCount();
      Lease.resize(List.of(new LeaseSize(decode, 64), LeaseSize.rest(prefill)));
      BitSet ofDecode = set(decode.stream().probeSms());
      BitSet ofPrefill = set(prefill.stream().probeSms());
      check("decode has 64 SMs", ofDecode.cardinality() == 64);
      check("prefill has the rest", ofPrefill.cardinality() == all - 64);
      check("the leases are disjoint", !ofDecode.intersects(ofPrefill));
    }
    check("no lease is alive", Lease.live().equals(List.of()));
  }

  private static void graphs(Device device) {
    int blocks = 4 * device.sms().smCount();
    long captured = Work.captured(blocks);
    try (Graph graph = Graph.create(captured);
        Lease lease = device.acquire(24)) {
      Work.destroy(captured);
      graph.setKernel(0, Dim.of(blocks), Dim.of(Work.BLOCK), 0, Work.arguments(1));
      graph.launch(lease.stream());
      lease.synchronize();
      check(
          "the graph runs on the lease's SMs, with other arguments",
          set(Work.seen(1)).equals(set(lease.stream().probeSms())));
      System.out.println(graph.info());
    }
  }

  private static void costs(SmResource part) {
    double[] microseconds = new double[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
      long begin = System.nanoTime();
      try (Context context = Context.create(part);
          Stream stream = context.createStream()) {
        check("a stream has a handle", stream.nativeHandle() != 0);
      }
      microseconds[i] = (System.nanoTime() - begin) / 1000.0;
      passed--;
    }
    Arrays.sort(microseconds);
    System.out.printf(
        "a cached context and a stream, created and closed: median %.2f us of %d%n",
        microseconds[ROUNDS / 2], ROUNDS);
  }

  private static BitSet set(int... numbers) {
    BitSet set = new BitSet();
    IntStream.of(numbers).forEach(set::set);
    return set;
  }

  private static void check(String what, boolean passes) {
    if (!passes) {
      throw new AssertionError("failed: " + what);
    }
    passed++;
  }
}
