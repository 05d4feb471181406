package gcx;

import static gcx.Support.NAME;
import static gcx.Support.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Leases: what their records hold, their streams, and how they are closed. */
@Timeout(60)
class LeaseTest {
  private final Device device = new Device(0);

  @BeforeEach
  @AfterEach
  void awaitNothingAlive() throws InterruptedException {
    Support.awaitNothingAlive();
  }

  @Test
  void recordsHoldTheLeasesFields() {
    boolean queues = Gcx.driver().capabilities().contains(Capability.WORKQUEUES);
    LeaseRequest request = LeaseRequest.of(40).withSharing(16).withName(NAME);
    try (Lease one = device.acquire(LeaseRequest.of(22).withName("one"));
        Lease two = device.acquire(queues ? request.withOwnQueues() : request)) {
      long id = one.info().id();
      assertEquals(
          new LeaseInfo(0, SmFamily.COSCHEDULED, false, false, 24, 24, 0, id, 0, "one"),
          one.info());
      LiveLease live =
          new LiveLease(
              id,
              0,
              SmFamily.COSCHEDULED,
              false,
              false,
              OptionalInt.of(24),
              24,
              0,
              false,
              "one",
              one.sms());
      assertEquals(live, Lease.live().get(0));
      LiveLease other = Lease.live(device).get(1);
      assertEquals(NAME, other.name());
      assertTrue(other.isShared() && two.info().isShared());
      assertEquals(16, other.exclusiveSmCount());
      assertEquals(queues, other.requireWorkqueues() && two.info().requireWorkqueues());
      assertTrue(one.sms().isDisjoint(two.sms()));
      assertEquals(List.of(), Lease.live(new Device(1)));
      GcxException error =
          refused(GcxException.AlreadyAcquired.class, "\"one\" has 24", () -> device.acquire(100));
      assertTrue(error.getMessage().startsWith("Device.acquire: requested 100 SMs"));
      assertTrue(error.getMessage().contains("LeaseRequest.withMinimum to accept fewer"));
    }
    if (!queues) {
      refused(
          GcxException.NotSupported.class,
          "LeaseRequest.withOwnQueues",
          () -> device.acquire(LeaseRequest.of(24).withOwnQueues()));
    }
  }

  @Test
  void firstStreamIsTheSameUntilClosed() {
    Lease lease = device.acquire(24);
    Stream stream = lease.stream();
    assertSame(stream, lease.stream());
    stream.close();
    assertNotSame(stream, lease.stream());
    assertEquals(1, lease.info().streamCount());
    Stream last = lease.stream();
    lease.close();
    assertTrue(last.isClosed());
  }

  @Test
  void leaseClosedEndsItsStreams() {
    Lease lease = device.acquire(24);
    Stream stream = lease.createStream();
    lease.close();
    // A handle of 0 would be CUDA's default stream, on all SMs.
    for (Executable use : List.<Executable>of(stream::nativeHandle, stream::info)) {
      assertThrows(GcxException.ContextDestroyed.class, use);
    }
    assertEquals(Optional.of(lease), stream.lease());
    stream.close();
    assertThrows(GcxException.InvalidHandle.class, stream::nativeHandle);
  }

  @Test
  void valuesThatJavaCannotPassAreRefused() {
    LeaseRequest some = LeaseRequest.of(24);
    for (Executable wrong :
        List.<Executable>of(
            () -> device.acquire(0),
            () -> device.acquire(LeaseSize.PARKED),
            () -> device.acquire(1L << 32),
            () -> some.withMinimum(-1),
            () -> some.withSharing(-1),
            () -> some.withTimeout(java.time.Duration.ofNanos(-1)),
            () -> device.acquire(some.withName("ä".repeat(32))),
            () -> device.acquire(some.withName("a\0b")),
            () -> Lease.resize(List.of()))) {
      assertThrows(GcxException.InvalidValue.class, wrong);
    }
    refused(
        GcxException.InvalidValue.class,
        "LeaseRequest.minSmCount is 25",
        () -> device.acquire(some.withMinimum(25)));
    assertThrows(GcxException.InvalidDevice.class, () -> new Device(-1).acquire(24));
    assertThrows(GcxException.InvalidDevice.class, () -> Lease.live(new Device(-1)));
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
              () -> new LeaseSize(lease, -8))) {
        assertThrows(GcxException.InvalidValue.class, wrong);
      }
      assertEquals(0, lease.info().changes());
    }
  }
}
