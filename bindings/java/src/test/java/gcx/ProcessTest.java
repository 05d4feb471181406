package gcx;

import static gcx.Support.NAME;
import static gcx.Support.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What concerns a whole process: driver, log, published leases, connections, reported counts. */
class ProcessTest {
  @TempDir private Path folder;

  private Child program(Class<?> program) throws Exception {
    Support.makePrivate(folder);
    Child child = Child.of(program.getName());
    child.environment().put("GCX_RESERVATION_DIR", folder.toString());
    child.environment().remove("CUDA_DEVICE_MAX_CONNECTIONS");
    return child;
  }

  @Test
  void driverIsTheSimulatedOne() {
    DriverInfo driver = Gcx.driver();
    assertTrue(driver.simulated());
    assertTrue(System.getenv("GCX_DRIVER").contains("@" + driver.version() / 1000 + "."));
    assertTrue(driver.headerVersion() >= 12040);
    assertTrue(Files.exists(Path.of(Gcx.simulatorPath())));
    Gcx.openDriver(null);
    Gcx.openDriver(System.getenv("GCX_DRIVER"));
    assertThrows(GcxException.DriverAlreadyOpen.class, () -> Gcx.openDriver("sim:a100@13.0"));
    refused(GcxException.DriverAlreadyOpen.class, NAME, () -> Gcx.openDriver(NAME));
    refused(
        GcxException.InvalidValue.class,
        "the character 0",
        () -> Gcx.openDriver("libcuda.so.1\0x"));
  }

  @Test
  void driverMissingThrowsDriverNotFound() throws Exception {
    Child child = Child.of("Scenario");
    child.environment().put("GCX_DRIVER", "/nowhere/libcuda.so.1");
    List<String> lines = child.run(1);
    assertTrue(
        lines.stream().anyMatch(line -> line.contains("GcxException$DriverNotFound")),
        lines::toString);
  }

  @Test
  void receiverThatThrowsDoesNotFailTheCall() {
    List<String> seen = Collections.synchronizedList(new ArrayList<>());
    Cache.trim(0); // a cached context would be reused without a message
    Gcx.setLog(
        LogLevel.DEBUG,
        (level, message) -> {
          seen.add(level + " " + message);
          Gcx.driver(); // it may call gcx
          if (level == LogLevel.DEBUG) {
            throw new IllegalStateException("a receiver that throws");
          }
        });
    Thread.UncaughtExceptionHandler before = Thread.currentThread().getUncaughtExceptionHandler();
    List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
    Thread.currentThread().setUncaughtExceptionHandler((thread, problem) -> thrown.add(problem));
    try {
      assertThrows(GcxException.InvalidDevice.class, () -> new Device(7).sms());
      Context.createPrivate(Support.part(56)).close();
    } finally {
      Gcx.setLog(LogLevel.NONE, null);
      Thread.currentThread().setUncaughtExceptionHandler(before);
    }
    assertTrue(seen.stream().anyMatch(line -> line.startsWith("DEBUG ")), seen.toString());
    assertTrue(seen.stream().anyMatch(line -> line.startsWith("INFO ")), seen.toString());
    assertEquals("a receiver that throws", thrown.get(0).getMessage());
    int count = seen.size();
    assertThrows(GcxException.InvalidDevice.class, () -> new Device(7).sms());
    assertEquals(count, seen.size());
  }

  @Test
  void setLogWithoutLevelKeepsTheReceiver() {
    List<String> first = new ArrayList<>();
    List<String> second = new ArrayList<>();
    Gcx.setLog(LogLevel.DEBUG, (level, message) -> first.add(message));
    try {
      assertThrows(
          NullPointerException.class,
          () -> Gcx.setLog(null, (level, message) -> second.add(message)));
      assertThrows(GcxException.InvalidDevice.class, () -> new Device(7).sms());
    } finally {
      Gcx.setLog(LogLevel.NONE, null);
    }
    assertEquals(1, first.size(), first.toString());
    assertEquals(List.of(), second);
  }

  /** Publishes its leases and lists them. */
  static final class Publisher {
    public static void main(String[] arguments) {
      assertEquals(List.of(), Published.processes());
      Published.stop();
      Published.start();
      Published.start(NAME);
      PublishedProcess self = Published.processes().get(0);
      assertEquals(NAME, self.name());
      assertEquals((int) ProcessHandle.current().pid(), self.pid());
      assertTrue(self.simulated());
      assertEquals(Gcx.driver().version(), self.driverVersion());
      assertEquals(Device.count(), self.deviceCount());
      assertTrue(Duration.between(self.since(), Instant.now()).toMinutes() < 5);
      Device device = new Device(0);
      try (Lease first = device.acquire(LeaseRequest.of(24).withName("a"));
          Lease shared = device.acquire(LeaseRequest.of(40).withSharing(16).withName(NAME))) {
        first.createStream();
        first.resize(16);
        PublishedLease expected =
            new PublishedLease(
                self.process(),
                first.info().id(),
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
        assertEquals(expected, Published.leases().get(0));
        PublishedLease second = Published.leases().get(1);
        assertEquals(NAME, second.name());
        assertEquals(shared.info().id(), second.id());
        assertEquals(2, second.exclusiveAtoms().size());
        assertEquals(3, second.sharedAtoms().size());
      }
      // More than fit into a JNI table of local references without EnsureLocalCapacity.
      List<Lease> many =
          IntStream.range(0, 60)
              .mapToObj(i -> device.acquire(LeaseRequest.of(8).withSharing().withName("l" + i)))
              .toList();
      assertEquals(60, Published.leases().size());
      assertEquals("l59", Published.leases().get(59).name());
      assertEquals(60, Lease.live().size());
      many.forEach(Lease::close);
      Published.stop();
      assertEquals(List.of(), Published.processes());
      System.out.println("seen");
    }
  }

  @Test
  void recordsHoldThePublishedFields() throws Exception {
    assertEquals(List.of("seen"), program(Publisher.class).run(0));
    refused(GcxException.InvalidValue.class, "the character 0", () -> Published.start("a\0b"));
    assertThrows(NullPointerException.class, () -> Published.start(null));
  }

  /** Requests connections before CUDA starts and after. */
  static final class Connections {
    public static void main(String[] arguments) {
      assertEquals(new QueueInfo(8, QueueSource.DEFAULT, false, true, false), Gcx.queues());
      Gcx.requestConnections(16);
      assertEquals(new QueueInfo(16, QueueSource.ENVIRONMENT, false, true, false), Gcx.queues());
      for (int wrong : new int[] {0, 33, -1}) {
        assertThrows(GcxException.InvalidValue.class, () -> Gcx.requestConnections(wrong));
      }
      Context.create(Support.part(24)).close();
      assertEquals(new QueueInfo(16, QueueSource.ENVIRONMENT, true, true, false), Gcx.queues());
      refused(
          GcxException.TooLate.class, "Gcx.requestConnections", () -> Gcx.requestConnections(32));
      System.out.println("requested");
    }
  }

  @Test
  void connectionsRequestedBeforeCudaStartsAreSet() throws Exception {
    assertEquals(List.of("requested"), program(Connections.class).run(0));
  }

  /** Returns the SM count that libcuda reports to another library, or -1 if it reports none. */
  static native int reportedSmCount();

  /** Enables the counts of partitions, or tries to after libcuda was loaded if it has arguments. */
  static final class Counts {
    public static void main(String[] arguments) {
      System.load(System.getProperty("gcx.work"));
      if (arguments.length > 0) {
        reportedSmCount(); // loads libcuda
        System.out.println(
            assertThrows(GcxException.TooLate.class, Gcx::reportPartitionCounts)
                .getMessage()
                .split(":")[0]);
        return;
      }
      Gcx.reportPartitionCounts();
      Gcx.reportPartitionCounts();
      try (Context context = Context.create(Support.part(24))) {
        System.out.println(reportedSmCount());
        try (Context.Pushed pushed = context.push()) {
          System.out.println(pushed != null ? reportedSmCount() : -1);
          System.out.println(CompletableFuture.supplyAsync(ProcessTest::reportedSmCount).join());
          System.out.println(new Device(0).info().smCount());
        }
      }
    }
  }

  @Test
  void countsReportedAreThoseOfTheThreadsContext() throws Exception {
    Child child = Child.of(Counts.class.getName());
    assertEquals(List.of("132", "24", "132", "132"), child.run(0));
  }

  @Test
  void countsRequestedAfterLibcudaWasLoadedAreRefused() throws Exception {
    Files.copy(Path.of(Gcx.simulatorPath()), folder.resolve("libcuda.so.1"));
    Child child = Child.of(Counts.class.getName());
    child.environment().put("LD_LIBRARY_PATH", folder.toString());
    assertEquals(List.of("Gcx.reportPartitionCounts"), child.runWith("late"));
  }
}
