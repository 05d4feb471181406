package gcx;

import static gcx.Support.NAME;
import static gcx.Support.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Reservations, in a private folder: records, tokens, lifetimes, and other processes. */
@Timeout(60)
@SuppressWarnings("try") // some are closed before the end of their block
class ReservationTest {
  @TempDir private Path folder;
  private final Device device = new Device(0);

  @BeforeEach
  void makeFolderPrivate() throws IOException {
    Support.makePrivate(folder);
  }

  @AfterEach
  void awaitNoReservation() throws Exception {
    Support.awaitReservations(folder, 0);
  }

  private ReservationParams request(long smCount) {
    return ReservationParams.of(smCount).withFolder(folder);
  }

  @Test
  void recordsHoldTheReservationsFields() {
    Instant before = Instant.now().minusSeconds(1);
    try (Reservation one = device.reserve(request(22).withName("one"))) {
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
      LiveReservation live = Reservation.live(folder).get(0);
      LiveReservation expected =
          new LiveReservation(
              info.id(),
              info.since(),
              Optional.empty(),
              (int) ProcessHandle.current().pid(),
              live.user(),
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
              live.processName(),
              device.info().name());
      assertEquals(expected, live);
      assertEquals(MpsState.OFF, device.info().mps());
      assertEquals(0.0, device.info().mpsThreadPercentage());
      assertEquals(24, one.smCount());
      assertEquals(Support.part(22), one.sms());
      GcxException error =
          refused(
              GcxException.AlreadyAcquired.class,
              "\"one\" of process " + live.pid(),
              () -> device.reserve(request(132)));
      assertTrue(
          error.getMessage().startsWith("Device.reserve: requested 132 SMs"), error::getMessage);
      assertTrue(error.getMessage().contains("ReservationParams.withMinimum to accept fewer"));
    }
    ReservationParams fine =
        ReservationParams.rest().withFolder(folder).withFamily(SmFamily.FINE).withName(NAME);
    try (Reservation all = device.reserve(fine.withMinimum(2));
        Lease lease = all.acquire(LeaseRequest.of(2).withSharing())) {
      assertEquals(NAME, Reservation.live(folder).get(0).name());
      assertEquals(SmFamily.FINE, all.sms().family());
      assertEquals(SmFamily.FINE, lease.info().family());
    }
  }

  @Test
  void valuesThatJavaCannotPassAreRefused() {
    Class<GcxException.InvalidValue> invalid = GcxException.InvalidValue.class;
    refused(invalid, "ReservationParams.rest() takes", () -> device.reserve(0));
    refused(invalid, "number of SMs: -1", () -> ReservationParams.of(-1));
    refused(invalid, "negative", () -> request(8).withTimeout(Duration.ofNanos(-1)));
    refused(
        invalid,
        "ReservationParams.minSmCount is 16",
        () -> device.reserve(request(8).withMinimum(16)));
    refused(invalid, "the character 0", () -> device.reserve(request(8).withName("a\0b")));
    refused(invalid, "Reservation.join: ", () -> Reservation.join(""));
    Path missing = folder.resolve("missing");
    for (Executable use :
        List.<Executable>of(
            () -> device.reserve(request(8).withFolder(missing)),
            () -> Reservation.live(missing))) {
      assertEquals(
          Result.OPERATING_SYSTEM, refused(GcxException.class, missing.toString(), use).result());
    }
    for (Executable nothing :
        List.<Executable>of(
            () -> Reservation.join(null),
            () -> Reservation.live(null),
            () -> request(8).withFamily(null),
            () -> request(8).withName(null),
            () -> request(8).withTimeout(null),
            () -> device.reserve(null))) {
      assertThrows(NullPointerException.class, nothing);
    }
  }

  @Test
  void folderNameBeyondAsciiIsTheSameInJavaAndC() throws IOException {
    Path other = Files.createDirectory(folder.resolve("zwölf"));
    Support.makePrivate(other);
    try (Reservation first = device.reserve(request(8).withFolder(other));
        Reservation joined = Reservation.join(first.token())) {
      assertEquals(first.info().id(), joined.info().id());
      Files.delete(Path.of(first.token()));
      assertTrue(first.info().lost() && joined.info().lost());
    }
    Files.delete(other);
  }

  @Test
  void reservationClosedCannotBeUsed() throws Exception {
    Reservation first = device.reserve(request(8));
    String token = first.token();
    Reservation joined = Reservation.join(token);
    assertTrue(joined.info().joined() && !first.info().joined());
    assertEquals(first.sms(), joined.sms());
    assertEquals("reservation", first.toString());
    first.close();
    first.close();
    assertTrue(first.isClosed() && !joined.isClosed());
    assertEquals("reservation, closed", first.toString());
    for (Executable use :
        List.<Executable>of(
            first::token, first::info, first::smCount, first::sms, () -> first.acquire(8))) {
      refused(GcxException.InvalidHandle.class, "the Reservation is closed", use);
    }
    assertEquals(1, Reservation.live(folder).size());
    joined.close();
    assertEquals(List.of(), Reservation.live(folder));
    refused(GcxException.NotFound.class, "has ended", () -> Reservation.join(token));
    device.reserve(request(8)); // awaitNoReservation fails unless the collector closes it
  }
}
