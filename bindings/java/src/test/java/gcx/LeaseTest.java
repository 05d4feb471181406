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
  void handedOverItIsClosed() {
    Lease from = device.acquire(24);
    try (Lease to = device.acquire(32);
        Stream giver = from.createStream()) {
      Stream own = from.stream();
      assertThrows(GcxException.InvalidValue.class, () -> from.handOver(from));
      assertThrows(NullPointerException.class, () -> from.handOver(null));
      assertFalse(from.isClosed());
      assertEquals(24, giver.smCount());
      from.handOver(to, ResizeOption.DEFERRED);
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
