package gcx;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Leases: who has which SMs, how they change, and what follows them. */
@Timeout(60)
class LeaseTest {
  private final Device device = new Device(0);

  @BeforeEach
  @AfterEach
  void nothingIsAlive() throws InterruptedException {
    eventuallyNoLeaseIsAlive();
  }

  /** The collector and the cleaner need a moment. */
  static void eventuallyNoLeaseIsAlive() throws InterruptedException {
    for (int i = 0; i < 200 && !Lease.live().isEmpty(); i++) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(20);
    }
    assertEquals(List.of(), Lease.live());
    LifetimeTest.eventuallyNothingIsAlive();
  }

  static GcxException refused(Class<? extends GcxException> kind, String part, Executable call) {
    GcxException error = assertThrows(kind, call);
    assertTrue(error.getMessage().contains(part), error.getMessage());
    return error;
  }

  @Test
  void nobodyElseHasTheSms() {
    try (Lease one = device.acquire(LeaseRequest.of(24).withName("one"));
        Lease two = device.acquire(LeaseRequest.of(22).withName("zwölf \uD83D\uDE00"))) {
      assertEquals(24, one.smCount());
      assertEquals(24, two.smCount());
      assertTrue(one.sms().isDisjoint(two.sms()));
      long id = one.info().id();
      LeaseInfo info =
          new LeaseInfo(0, SmFamily.COSCHEDULED, false, false, 24, 24, 0, id, 0, "one");
      assertEquals(info, one.info());
      int[] first = one.stream().probeSms();
      int[] second = two.stream().probeSms();
      assertEquals(
          48,
          Arrays.stream(new int[][] {first, second})
              .flatMapToInt(Arrays::stream)
              .distinct()
              .count());
      LiveLease live =
          new LiveLease(
              id,
              0,
              SmFamily.COSCHEDULED,
              false,
              false,
              OptionalInt.of(24),
              24,
              1,
              false,
              "one",
              one.sms());
      assertEquals(live, Lease.live().get(0));
      assertEquals("zwölf \uD83D\uDE00", Lease.live(device).get(1).name());
      assertEquals(List.of(), Lease.live(new Device(1)));
      GcxException error =
          refused(GcxException.AlreadyAcquired.class, "\"one\" has 24", () -> device.acquire(100));
      assertTrue(error.getMessage().startsWith("Device.acquire: requested 100 SMs"));
      assertTrue(error.getMessage().contains("LeaseRequest.withMinimum to accept fewer"));
      assertEquals(Result.ALREADY_ACQUIRED, error.result());
      assertThrows(GcxException.ResourceConfiguration.class, () -> device.acquire(140));
    }
  }

  @Test
  void explicitSplitsKeepClearOfLeases() {
    try (Lease lease = device.acquire(24)) {
      List<SmRequest> requests = List.of(SmRequest.of(24));
      Split clear = device.sms().split(requests, SplitOption.UNLEASED);
      assertTrue(clear.groups().get(0).isDisjoint(lease.sms()));
      assertEquals(132 - 48, clear.remainder().smCount());
      assertEquals(24, device.sms().split(requests).groups().get(0).overlap(lease.sms()));
      refused(
          GcxException.ResourceConfiguration.class,
          "",
          () -> device.sms().plan(List.of(SmRequest.of(120)), SplitOption.UNLEASED));
    }
  }

  @Test
  void fewerWillDoIfSaid() {
    try (Lease most = device.acquire(100);
        Lease rest = device.acquire(LeaseRequest.of(64).withMinimum(20))) {
      assertEquals(132 - most.smCount(), rest.smCount());
      assertThrows(GcxException.AlreadyAcquired.class, () -> device.acquire(LeaseRequest.rest()));
    }
    try (Lease all = device.acquire(LeaseRequest.rest())) {
      assertEquals(132, all.smCount());
    }
  }

  @Test
  void sharedOnesOverlapButForTheirOwn() {
    LeaseRequest shared = LeaseRequest.of(88).withSharing(24).withName("two");
    try (Lease one = device.acquire(LeaseRequest.of(64).withSharing());
        Lease two = device.acquire(shared)) {
      assertEquals(64, one.sms().overlap(two.sms()));
      assertTrue(two.info().isShared());
      assertEquals(24, two.info().exclusiveSmCount());
      assertEquals(24, Lease.live().get(1).exclusiveSmCount());
      assertThrows(GcxException.ResourceConfiguration.class, () -> two.resize(16));
      two.resize(40);
      assertEquals(16, one.sms().overlap(two.sms()));
    }
  }

  @Test
  void streamsFollow() {
    try (Lease lease = device.acquire(24);
        Stream stream = lease.createStream(-9)) {
      assertEquals(Optional.of(lease), stream.lease());
      assertEquals(-5, stream.info().priority());
      long before = stream.nativeHandle();
      int[] small = stream.probeSms();
      lease.resize(64);
      assertEquals(64, lease.smCount());
      assertEquals(1, lease.info().changes());
      long after = stream.nativeHandle();
      assertNotEquals(before, after);
      assertEquals(after, stream.nativeHandle());
      int[] large = stream.probeSms();
      assertEquals(64, large.length);
      assertTrue(Arrays.stream(small).allMatch(id -> Arrays.binarySearch(large, id) >= 0));
      try (Stream former = Stream.fromNative(before)) {
        assertArrayEquals(small, former.probeSms());
      }
      long misses = Cache.stats().misses();
      lease.resize(24);
      assertArrayEquals(small, stream.probeSms());
      assertEquals(before, stream.nativeHandle());
      assertEquals(misses, Cache.stats().misses());
      assertEquals(24, stream.smCount());
      assertEquals(lease.sms(), stream.sms());
    }
  }

  @Test
  void smsChangeHandsInOneOperation() {
    try (Lease decode = device.acquire(LeaseRequest.of(32).withName("decode"));
        Lease prefill = device.acquire(LeaseRequest.rest().withName("prefill"))) {
      Stream fast = decode.stream();
      Stream heavy = prefill.stream();
      List<LeaseSize> layout = List.of(LeaseSize.of(decode, 64), LeaseSize.rest(prefill));
      Lease.prepare(layout);
      assertEquals(32, decode.smCount());
      long misses = Cache.stats().misses();
      for (ResizeOption[] options :
          new ResizeOption[][] {{}, {ResizeOption.AT_ONCE}, {ResizeOption.AT_ONCE}}) {
        Lease.resize(layout, options);
        assertEquals(64, fast.probeSms().length);
        assertEquals(68, heavy.probeSms().length);
        assertTrue(decode.sms().isDisjoint(prefill.sms()));
        fast.synchronize();
        decode.synchronize();
        assertTrue(decode.isDone() && prefill.isDone() && fast.isDone());
        Lease.resize(List.of(LeaseSize.of(decode, 32), LeaseSize.rest(prefill)), options);
        assertEquals(100, heavy.probeSms().length);
      }
      assertEquals(misses, Cache.stats().misses());
      refused(
          GcxException.ResourceConfiguration.class,
          "64 for \"decode\", 100 for \"prefill\"",
          () -> Lease.resize(List.of(LeaseSize.of(decode, 64), LeaseSize.of(prefill, 100))));
      assertEquals(32, decode.smCount());
      assertEquals(100, prefill.smCount());
    }
  }

  @Test
  void handedOverItIsClosed() {
    Lease from = device.acquire(24);
    try (Lease to = device.acquire(32);
        Stream giver = from.createStream()) {
      Stream own = from.stream();
      assertThrows(GcxException.InvalidValue.class, () -> from.handOver(from));
      assertThrows(NullPointerException.class, () -> from.handOver(null));
      assertFalse(from.isClosed());
      assertEquals(24, giver.smCount());
      from.handOver(to, ResizeOption.AT_ONCE);
      assertEquals(56, to.smCount());
      assertEquals(56, to.stream().probeSms().length);
      assertTrue(from.isClosed());
      assertTrue(own.isClosed());
      assertThrows(GcxException.ContextDestroyed.class, giver::isDone);
      assertThrows(GcxException.InvalidHandle.class, () -> from.handOver(to));
      from.close();
      assertThrows(GcxException.InvalidHandle.class, () -> to.handOver(from));
      assertFalse(to.isClosed());
      assertEquals(1, Lease.live().size());
    }
  }

  @Test
  void itsOwnStreamIsOneAndEndsWithIt() {
    Lease lease = device.acquire(24);
    Stream stream = lease.stream();
    assertSame(stream, lease.stream());
    stream.close();
    assertNotSame(stream, lease.stream());
    assertEquals(1, lease.info().streamCount());
    Stream last = lease.stream();
    lease.close();
    assertTrue(last.isClosed());
    assertThrows(GcxException.InvalidHandle.class, lease::stream);
  }

  @Test
  void closedItAnswersSoAndItsStreamsHaveEnded() {
    Lease lease = device.acquire(24);
    Stream stream = lease.createStream();
    Event event = Event.create(device);
    assertEquals("lease", lease.toString());
    lease.close();
    lease.close();
    assertTrue(lease.isClosed());
    assertEquals("lease, closed", lease.toString());
    for (Executable use :
        List.<Executable>of(
            lease::info,
            lease::sms,
            lease::createStream,
            lease::synchronize,
            lease::isDone,
            () -> lease.resize(32),
            () -> Lease.prepare(List.of(LeaseSize.rest(lease))))) {
      refused(GcxException.InvalidHandle.class, "the Lease is closed", use);
    }
    // A handle of 0 would be CUDA's default stream, on all SMs.
    for (Executable use :
        List.<Executable>of(
            stream::nativeHandle,
            stream::isDone,
            stream::synchronize,
            stream::probeSms,
            stream::info,
            () -> stream.record(event))) {
      assertThrows(GcxException.ContextDestroyed.class, use);
    }
    stream.close();
    event.close();
    assertThrows(GcxException.InvalidHandle.class, stream::nativeHandle);
  }

  @Test
  void aStreamKeepsItsLeaseFromTheCollector() throws InterruptedException {
    Stream stream = device.acquire(24).createStream();
    for (int i = 0; i < 3; i++) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(20);
      assertEquals(24, stream.probeSms().length);
    }
    assertEquals(24, stream.lease().orElseThrow().smCount());
  }

  @Test
  void whatIsForgottenIsGivenUp() throws InterruptedException {
    for (int i = 0; i < 4; i++) {
      assertEquals(24, device.acquire(24).stream().probeSms().length);
    }
    eventuallyNoLeaseIsAlive();
  }

  @Test
  void otherFamiliesWantAMap() {
    device.mapSms(SmFamily.COSCHEDULED);
    device.mapSms(SmFamily.FINE);
    try (Lease lease = device.acquire(24);
        Lease fine = device.acquire(LeaseRequest.of(10).withFamily(SmFamily.FINE))) {
      assertEquals(10, fine.smCount());
      assertEquals(SmFamily.FINE, fine.info().family());
      assertTrue(lease.sms().isDisjoint(fine.sms()));
      assertThrows(
          GcxException.ResourceConfiguration.class,
          () -> Lease.resize(List.of(LeaseSize.of(lease, 16), LeaseSize.of(fine, 8))));
    }
    Device second = new Device(1);
    try (Lease lease = second.acquire(24)) {
      refused(
          GcxException.NotReady.class,
          "call Device.mapSms for each",
          () -> second.acquire(LeaseRequest.of(10).withFamily(SmFamily.FINE)));
      assertEquals(1, lease.info().device());
    }
  }

  @Test
  void leasesOfTwoDevicesAreNotChangedTogether() {
    try (Lease here = device.acquire(24);
        Lease there = new Device(1).acquire(24)) {
      assertEquals(1, Lease.live(new Device(1)).size());
      assertThrows(
          GcxException.ResourceConfiguration.class,
          () -> Lease.resize(List.of(LeaseSize.of(here, 32), LeaseSize.of(there, 32))));
      assertThrows(GcxException.ResourceConfiguration.class, () -> here.handOver(there));
      assertFalse(here.isClosed());
    }
  }

  @Test
  void wrongValuesAreRefused() {
    LeaseRequest some = LeaseRequest.of(24);
    assertThrows(GcxException.InvalidDevice.class, () -> new Device(7).acquire(24));
    assertThrows(GcxException.InvalidDevice.class, () -> new Device(-1).acquire(24));
    assertThrows(GcxException.InvalidDevice.class, () -> Lease.live(new Device(-1)));
    for (Executable wrong :
        List.<Executable>of(
            () -> device.acquire(0),
            () ->
                new LeaseRequest(
                    0, 0, false, 0, false, SmFamily.NONE, java.time.Duration.ZERO, null, ""),
            () -> device.acquire(-1),
            () -> device.acquire(1L << 32),
            () -> some.withMinimum(-1),
            () -> device.acquire(some.withSharing(25)),
            () -> device.acquire(some.withFamily(SmFamily.STRUCTURED)),
            () -> device.acquire(some.withFamily(SmFamily.FOREIGN)),
            () -> device.acquire(some.withName("ä".repeat(32))),
            () -> device.acquire(some.withName("a\0b")),
            () -> some.withTimeout(java.time.Duration.ofNanos(-1)),
            () -> Lease.resize(List.of()))) {
      assertThrows(GcxException.InvalidValue.class, wrong);
    }
    refused(
        GcxException.InvalidValue.class,
        "LeaseRequest.minSmCount is 25",
        () -> device.acquire(some.withMinimum(25)));
    refused(
        GcxException.InvalidValue.class,
        "set LeaseRequest.withSharing",
        () ->
            device.acquire(
                new LeaseRequest(
                    24,
                    0,
                    false,
                    8,
                    false,
                    SmFamily.COSCHEDULED,
                    java.time.Duration.ZERO,
                    null,
                    "")));
    for (Executable wrong :
        List.<Executable>of(
            () -> device.acquire(null),
            () -> some.withName(null),
            () -> some.withFamily(null),
            () -> some.withTimeout(null),
            () -> new LeaseSize(null, 8),
            () -> Lease.resize(null))) {
      assertThrows(NullPointerException.class, wrong);
    }
    try (Lease lease = device.acquire(some.withName("ä".repeat(31) + "b"))) {
      for (Executable wrong :
          List.<Executable>of(
              () -> lease.resize(0),
              () -> new LeaseSize(lease, 0),
              () -> LeaseSize.of(lease, -8),
              () -> Lease.resize(List.of(LeaseSize.of(lease, 24), LeaseSize.rest(lease))))) {
        assertThrows(GcxException.InvalidValue.class, wrong);
      }
      refused(GcxException.ResourceConfiguration.class, "140 for", () -> lease.resize(140));
      assertEquals(0, lease.info().changes());
    }
  }
}
