package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What other processes see, and the queues: in processes of their own, as both are a process's. */
class PublishedTest {
  private static final String NAME = "zwölf \uD83D\uDE00";

  @TempDir private Path folder;

  private Child program(Class<?> program) throws Exception {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
    Child child = Child.of(program.getName(), "-ea");
    child.environment().put("GCX_RESERVATION_DIR", folder.toString());
    child.environment().remove("CUDA_DEVICE_MAX_CONNECTIONS");
    return child;
  }

  private static void same(Object expected, Object found) {
    if (!expected.equals(found)) {
      throw new AssertionError("expected " + expected + ", got " + found);
    }
  }

  /** Publishes, and sees itself. */
  static final class Publisher {
    public static void main(String[] arguments) {
      same(List.of(), Published.processes());
      same(List.of(), Published.leases());
      Published.stop();
      Published.start();
      Published.start(NAME);
      PublishedProcess self = Published.processes().get(0);
      same(NAME, self.name());
      same((int) ProcessHandle.current().pid(), self.pid());
      same(true, self.simulated());
      same(Gcx.driver().version(), self.driverVersion());
      same(Device.count(), self.deviceCount());
      same(true, Duration.between(self.since(), Instant.now()).toMinutes() < 5);
      Device device = new Device(0);
      try (Lease alone = device.acquire(LeaseRequest.of(24).withName("a"));
          Lease shared = device.acquire(LeaseRequest.of(40).withSharing(16).withName(NAME))) {
        alone.createStream();
        alone.resize(16);
        same(2, Published.processes().get(0).leaseCount());
        PublishedLease first = Published.leases().get(0);
        PublishedLease second = Published.leases().get(1);
        PublishedLease expected =
            new PublishedLease(
                self.process(),
                alone.info().id(),
                1,
                self.pid(),
                true,
                0,
                SmFamily.COSCHEDULED,
                false,
                false,
                false,
                OptionalInt.of(16),
                16,
                1,
                132,
                16,
                8,
                12,
                List.of(0, 1),
                List.of(),
                device.info().uuid(),
                "a",
                NAME,
                device.info().name());
        same(expected, first);
        same(NAME, second.name());
        same(true, second.isShared());
        same(2, second.exclusiveAtoms().size());
        same(3, second.sharedAtoms().size());
        same(shared.info().id(), second.id());
      }
      same(List.of(), Published.leases());
      // More than fit into the table of local references that JNI asks for.
      List<Lease> many =
          IntStream.range(0, 60)
              .mapToObj(i -> device.acquire(LeaseRequest.of(8).withSharing().withName("l" + i)))
              .toList();
      same(60, Published.leases().size());
      same("l59", Published.leases().get(59).name());
      same(60, Lease.live().size());
      many.forEach(Lease::close);
      Published.stop();
      same(List.of(), Published.processes());
      System.out.println("seen");
    }
  }

  @Test
  void theProcessSeesItself() throws Exception {
    assertEquals(List.of("seen"), program(Publisher.class).run(0));
  }

  @Test
  void aNameThatIsTooLongIsRefused() {
    refused(
        GcxException.InvalidValue.class,
        "Published.start: name has more than 63 bytes",
        () -> Published.start("ü".repeat(32)));
    refused(GcxException.InvalidValue.class, "the character 0", () -> Published.start("a\0b"));
    assertThrows(NullPointerException.class, () -> Published.start(null));
  }

  /** Asks for queues before CUDA starts and after. */
  static final class Asker {
    public static void main(String[] arguments) {
      same(new QueueInfo(8, QueueSource.DEFAULT, false, true, false), Gcx.queues());
      Gcx.requestConnections(16);
      same(new QueueInfo(16, QueueSource.ENVIRONMENT, false, true, false), Gcx.queues());
      Gcx.requestConnections(1);
      same(16, Gcx.queues().connections());
      for (int wrong : new int[] {0, 33, -1}) {
        assertThrows(GcxException.InvalidValue.class, () -> Gcx.requestConnections(wrong));
      }
      Context.create(new Device(0).sms().split(24).groups().get(0)).close();
      same(new QueueInfo(16, QueueSource.ENVIRONMENT, true, true, false), Gcx.queues());
      Gcx.requestConnections(8);
      refused(
          GcxException.NotPermitted.class,
          "Gcx.requestConnections",
          () -> Gcx.requestConnections(32));
      System.out.println("asked");
    }
  }

  @Test
  void queuesAreAskedForInTime() throws Exception {
    assertEquals(List.of("asked"), program(Asker.class).run(0));
    Child one = program(Lonely.class);
    one.environment().put("CUDA_DEVICE_MAX_CONNECTIONS", "1");
    assertEquals(List.of("WARNING", "1 true"), one.run(0));
    Child odd = program(Lonely.class);
    odd.environment().put("CUDA_DEVICE_MAX_CONNECTIONS", "many");
    assertEquals(List.of("0 false"), odd.run(0));
  }

  /** Makes a context and tells of the queues. */
  static final class Lonely {
    public static void main(String[] arguments) {
      Gcx.setLog(LogLevel.WARNING, (level, message) -> System.out.println(level));
      Context.create(new Device(0).sms().split(24).groups().get(0)).close();
      System.out.println(Gcx.queues().connections() + " " + Gcx.queues().tooFew());
    }
  }

  @Test
  void leasesInsistOnQueuesOfTheirOwn() {
    Device device = new Device(0);
    LeaseRequest request = LeaseRequest.of(24).withOwnQueues();
    if (Gcx.capability(Capability.WORKQUEUES).available()) {
      try (Lease lease = device.acquire(request);
          Lease shared = device.acquire(LeaseRequest.of(24).withSharing().withOwnQueues());
          Lease other = device.acquire(24)) {
        assertTrue(lease.info().requireWorkqueues() && !lease.info().isShared());
        assertTrue(shared.info().requireWorkqueues() && shared.info().isShared());
        assertTrue(!other.info().requireWorkqueues());
        assertTrue(Lease.live().get(0).requireWorkqueues() && !Lease.live().get(0).isShared());
      }
    } else {
      refused(
          GcxException.NotSupported.class,
          "LeaseRequest.withOwnQueues",
          () -> device.acquire(request));
    }
  }
}
