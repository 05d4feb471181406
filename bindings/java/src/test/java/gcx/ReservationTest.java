package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Reservations: SMs that no other process has, in a folder of the test's own. */
@Timeout(60)
class ReservationTest {
  private static final String NAME = "zwölf \uD83D\uDE00";

  @TempDir private Path folder;
  private final Device device = new Device(0);
  private final ExecutorService pool = Executors.newCachedThreadPool();

  @BeforeEach
  void isPrivate() throws IOException {
    setMode(folder, "rwx------");
  }

  @AfterEach
  void nothingIsHeld() throws Exception {
    pool.shutdownNow();
    assertTrue(pool.awaitTermination(20, TimeUnit.SECONDS));
    untilListed(0);
    assertEquals(List.of(), files());
  }

  static void setMode(Path path, String mode) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode));
  }

  private List<Path> files() throws IOException {
    try (java.util.stream.Stream<Path> found = Files.list(folder)) {
      return found.toList();
    }
  }

  private ReservationParams asked(long smCount) {
    return ReservationParams.of(smCount).withFolder(folder);
  }

  private void untilListed(int count) throws InterruptedException {
    while (Reservation.live(folder).size() != count) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(2);
    }
  }

  @Test
  void nobodyElseHasTheSms() {
    Instant before = Instant.now().minusSeconds(1);
    try (Reservation one = device.reserve(asked(22).withName("one"));
        Reservation two =
            device.reserve(ReservationParams.rest().withFolder(folder).withName(NAME))) {
      ReservationInfo info = one.info();
      assertEquals(
          new ReservationInfo(
              SmFamily.COSCHEDULED,
              24,
              132,
              false,
              true,
              false,
              MpsState.OFF,
              0,
              info.id(),
              info.since(),
              List.of(0, 1, 2),
              device.info().uuid(),
              "one"),
          info);
      assertTrue(info.since().isAfter(before) && info.since().isBefore(Instant.now()));
      assertEquals(24, one.smCount());
      assertEquals(108, two.smCount());
      assertEquals(device.sms().split(22).groups().get(0), one.sms());
      assertTrue(one.sms().isDisjoint(two.sms()));
      List<LiveReservation> live = Reservation.live(folder);
      assertEquals(2, live.size());
      boolean first = live.get(0).id() == info.id(); // both may be of one millisecond
      LiveReservation mine = live.get(first ? 0 : 1);
      LiveReservation other = live.get(first ? 1 : 0);
      LiveReservation expected =
          new LiveReservation(
              info.id(),
              info.since(),
              Optional.empty(),
              (int) ProcessHandle.current().pid(),
              mine.user(),
              true,
              false,
              SmFamily.COSCHEDULED,
              OptionalInt.of(24),
              132,
              16,
              8,
              12,
              MpsState.OFF,
              0,
              OptionalLong.empty(),
              List.of(0, 1, 2),
              device.info().uuid(),
              "one",
              mine.processName(),
              device.info().name());
      assertEquals(expected, mine);
      assertEquals(NAME, other.name());
      assertEquals(two.info().id(), other.id());
      assertEquals(new MpsInfo(MpsState.OFF, 0), device.mps());
      GcxException error =
          refused(
              GcxException.AlreadyAcquired.class,
              "\"one\" of process " + expected.pid(),
              () -> device.reserve(asked(8)));
      assertTrue(
          error.getMessage().startsWith("Device.reserve: asked for 8 SMs"), error::getMessage);
      assertTrue(error.getMessage().contains("ReservationParams.withMinimum to accept fewer"));
      // Another device's SMs are others.
      try (Reservation elsewhere = new Device(1).reserve(asked(132))) {
        assertNotEquals(info.deviceUuid(), elsewhere.info().deviceUuid());
      }
    }
    try (Reservation most = device.reserve(asked(120).withFamily(SmFamily.FINE));
        Reservation fewer = device.reserve(asked(64).withFamily(SmFamily.FINE).withMinimum(2))) {
      assertEquals(132 - most.smCount(), fewer.smCount());
      assertEquals(SmFamily.FINE, fewer.sms().family());
      try (Lease lease = fewer.acquire(2)) {
        assertEquals(SmFamily.FINE, lease.info().family());
      }
    }
  }

  @Test
  void wrongRequestsAreRefused() {
    Class<GcxException.InvalidValue> invalid = GcxException.InvalidValue.class;
    refused(invalid, "ReservationParams.rest() takes", () -> device.reserve(0));
    refused(
        invalid,
        "ReservationParams.rest() takes",
        () -> new ReservationParams(0, 0, SmFamily.COSCHEDULED, Duration.ZERO, null, "", null));
    refused(invalid, "-1 is no number of SMs", () -> ReservationParams.of(-1));
    refused(invalid, "before now", () -> asked(8).withTimeout(Duration.ofNanos(-1)));
    refused(
        invalid,
        "ReservationParams.minSmCount is 16",
        () -> device.reserve(asked(8).withMinimum(16)));
    refused(invalid, "63 bytes", () -> device.reserve(asked(8).withName("x".repeat(64))));
    refused(invalid, "the character 0", () -> device.reserve(asked(8).withName("a\0b")));
    for (SmFamily family : List.of(SmFamily.STRUCTURED, SmFamily.FOREIGN)) {
      refused(invalid, "", () -> device.reserve(asked(8).withFamily(family)));
    }
    refused(invalid, "", () -> device.reserve(asked(8).withFolder(Path.of("here"))));
    refused(invalid, "", () -> Reservation.live(Path.of("")));
    refused(GcxException.InvalidDevice.class, "", () -> new Device(2).reserve(asked(8)));
    refused(GcxException.InvalidDevice.class, "Device.mps", () -> new Device(2).mps());
    refused(GcxException.ResourceConfiguration.class, "132 SMs", () -> device.reserve(asked(140)));
    for (String token : List.of("", "x", "/", folder + "/hold")) {
      refused(invalid, "Reservation.join: ", () -> Reservation.join(token));
    }
    for (Executable nothing :
        List.<Executable>of(
            () -> Reservation.join(null),
            () -> Reservation.live(null),
            () -> asked(8).withFamily(null),
            () -> asked(8).withName(null),
            () -> asked(8).withTimeout(null),
            () -> device.reserve(null))) {
      assertThrows(NullPointerException.class, nothing);
    }
  }

  @Test
  void foldersThatCannotBeAgreedOnAreRefused() throws IOException {
    Path missing = folder.resolve("missing");
    for (Executable use :
        List.<Executable>of(
            () -> device.reserve(asked(8).withFolder(missing)), () -> Reservation.live(missing))) {
      assertEquals(
          Result.OPERATING_SYSTEM, refused(GcxException.class, missing.toString(), use).result());
    }
    setMode(folder, "rwxrwxrwx");
    refused(GcxException.NotPermitted.class, folder.toString(), () -> device.reserve(asked(8)));
    refused(GcxException.NotPermitted.class, folder.toString(), () -> Reservation.live(folder));
    setMode(folder, "rwx------");
    // A name beyond ASCII is the same here and there.
    Path other = Files.createDirectory(folder.resolve("zwölf"));
    setMode(other, "rwx------");
    try (Reservation held = device.reserve(asked(8).withFolder(other));
        Reservation joined = Reservation.join(held.token())) {
      assertEquals(held.info().id(), joined.info().id());
      assertTrue(Files.exists(Path.of(held.token())));
      Files.delete(Path.of(held.token()));
      assertTrue(held.info().lost() && joined.info().lost());
    }
    Files.delete(other);
  }

  @Test
  void closingTwiceIsNothingAndUsingAfterwardsAnError() throws Exception {
    Reservation held = device.reserve(asked(8));
    String token = held.token();
    Reservation joined = Reservation.join(token);
    assertTrue(joined.info().joined() && !held.info().joined());
    assertEquals(held.sms(), joined.sms());
    assertEquals("reservation", held.toString());
    held.close();
    held.close();
    assertTrue(held.isClosed() && !joined.isClosed());
    assertEquals("reservation, closed", held.toString());
    for (Executable use :
        List.<Executable>of(
            held::token, held::info, held::smCount, held::sms, () -> held.acquire(8))) {
      refused(GcxException.InvalidHandle.class, "the Reservation is closed", use);
    }
    assertEquals(1, Reservation.live(folder).size());
    joined.close();
    assertEquals(List.of(), Reservation.live(folder));
    refused(GcxException.NotFound.class, "has ended", () -> Reservation.join(token));
    // What nobody refers to is closed by the collector: nothingIsHeld waits for it.
    device.reserve(asked(8));
  }

  private Callable<GcxException> refusal(ReservationParams request) {
    return () -> {
      GcxException error =
          assertThrows(GcxException.NotPermitted.class, () -> device.reserve(request).close());
      assertEquals(
          error.getMessage().contains("by Thread.interrupt"),
          Thread.interrupted(),
          error::getMessage);
      return error;
    };
  }

  @Test
  void waitsAreServedInOrderEndInTimeAndAreGivenUp() throws Exception {
    Cancel cancel = new Cancel();
    ReservationParams waiting = asked(24).withTimeout(ReservationParams.FOREVER);
    Reservation held = device.reserve(asked(112));
    refused(
        GcxException.AlreadyAcquired.class,
        "timed out after 30 ms",
        () -> device.reserve(asked(24).withTimeout(Duration.ofMillis(30))));
    Future<Reservation> first = pool.submit(() -> device.reserve(waiting.withName("first")));
    untilListed(2);
    LiveReservation live = Reservation.live(folder).get(1);
    assertTrue(live.waits() && live.until().isEmpty() && live.atoms().isEmpty());
    assertEquals("first", live.name());
    assertEquals(OptionalInt.of(24), live.smCount());
    // 20 are free, but the other came before.
    refused(
        GcxException.AlreadyAcquired.class,
        "1 waits, the first, \"first\" of process",
        () -> device.reserve(asked(8)));
    Thread[] waits = new Thread[1];
    Future<GcxException> interrupted =
        pool.submit(
            () -> {
              waits[0] = Thread.currentThread();
              return refusal(waiting.withCancel(new Cancel())).call();
            });
    untilListed(3);
    Future<GcxException> cancelled =
        pool.submit(refusal(asked(8).withCancel(cancel).withTimeout(Duration.ofDays(1))));
    untilListed(4);
    assertTrue(Reservation.live(folder).get(3).until().orElseThrow().isAfter(Instant.now()));
    cancel.signal();
    assertTrue(cancelled.get().getMessage().contains("cancelled by Cancel.signal"));
    waits[0].interrupt();
    assertTrue(interrupted.get().getMessage().contains("cancelled by Thread.interrupt"));
    refused(
        GcxException.NotPermitted.class,
        "",
        () -> device.reserve(waiting.withCancel(cancel)).close());
    untilListed(2);
    assertFalse(first.isDone());
    held.close();
    first.get().close();
  }

  /** SMs go from thread to thread: each takes, joins, acquires and closes while others do. */
  @Test
  void threadsTakeTurns() throws Exception {
    List<Future<Integer>> turns = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      ReservationParams request = asked(64).withTimeout(Duration.ofSeconds(30));
      turns.add(
          pool.submit(
              () -> {
                int sms = 0;
                for (int turn = 0; turn < 4; turn++) {
                  try (Reservation held = device.reserve(request);
                      Reservation joined = Reservation.join(held.token());
                      Lease lease = joined.acquire(LeaseRequest.of(8).withSharing())) {
                    sms += lease.sms().overlap(held.sms());
                    List<LiveReservation> live = Reservation.live(folder);
                    long atoms = live.stream().flatMap(one -> one.atoms().stream()).count();
                    assertEquals(
                        atoms,
                        live.stream().flatMap(one -> one.atoms().stream()).distinct().count());
                  }
                }
                return sms;
              }));
    }
    for (Future<Integer> turn : turns) {
      assertEquals(32, turn.get());
    }
  }
}
