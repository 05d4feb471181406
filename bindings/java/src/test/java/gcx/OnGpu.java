package gcx;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;

/** What only a GPU tells: tests/gpu/run-java.sh runs it there, where JUnit isn't. */
final class OnGpu {
  private static final int ROUNDS = 2000;
  private static int passed;

  private OnGpu() {}

  public static void main(String[] arguments) {
    check("the driver is no simulation", !Gcx.driver().simulated());
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
      check("the large part has its SMs", ofFirst.cardinality() == all.smCount() - 24);
      check("the small part has its SMs", ofSecond.cardinality() == 24);
      check("they are disjoint", !ofFirst.intersects(ofSecond));
      check("events tell times", end.millisecondsSince(start) > 0);
      check("what was recorded is done", end.isDone() && second.isDone());
      device.mapSms(SmFamily.COSCHEDULED);
      check("the map agrees", set(split.groups().get(1).smIds()).equals(ofSecond));
      try (Context.Pushed pushed = large.push()) {
        check("it is current " + pushed, Context.current().equals(java.util.Optional.of(large)));
      }
      try (Stream same = Stream.fromNative(second.nativeHandle())) {
        check("a native stream has the SMs", same.smCount() == 24);
      }
    }
    leases(device);
    costs(split.groups().get(1));
    check("nothing is alive", Context.live().equals(List.of()));
    System.out.println(passed + " passed, 0 failed");
  }

  private static void leases(Device device) {
    try (Lease decode = device.acquire(LeaseRequest.of(32).withName("decode"));
        Lease prefill = device.acquire(LeaseRequest.rest().withName("prefill"))) {
      long before = decode.stream().nativeHandle();
      int all = decode.smCount() + prefill.smCount();
      check("the leases have all SMs", all == device.sms().smCount());
      for (int count : new int[] {64, 32, 48}) {
        Lease.resize(List.of(LeaseSize.of(decode, count), LeaseSize.rest(prefill)));
        BitSet ofDecode = set(decode.stream().probeSms());
        BitSet ofPrefill = set(prefill.stream().probeSms());
        check("decode has " + count, ofDecode.cardinality() == count);
        check("prefill has the rest", ofPrefill.cardinality() == all - count);
        check("the leases are disjoint", !ofDecode.intersects(ofPrefill));
      }
      check("the native stream is another", decode.stream().nativeHandle() != before);
      decode.handOver(prefill);
      check("all is prefill's", prefill.stream().probeSms().length == all);
    }
    check("no lease is alive", Lease.live().equals(List.of()));
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
        "a context that was kept, a stream of it, and both given back: median %.2f us of %d%n",
        microseconds[ROUNDS / 2], ROUNDS);
  }

  private static BitSet set(int... numbers) {
    BitSet set = new BitSet();
    IntStream.of(numbers).forEach(set::set);
    return set;
  }

  private static void check(String what, boolean holds) {
    if (!holds) {
      throw new AssertionError("not so: " + what);
    }
    passed++;
  }
}
