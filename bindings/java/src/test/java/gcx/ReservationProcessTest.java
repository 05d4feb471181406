package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A reservation that another process joins, under MPS, and that ends when the process is killed.
 */
@Timeout(60)
class ReservationProcessTest {
  private static final String NAME = "zwölf \uD83D\uDE00";

  @TempDir private Path folder;
  private final Device device = new Device(0);

  /** Joins a reservation, tells of it, and keeps it until it is ended. */
  static final class Joiner {
    public static void main(String[] arguments) throws IOException {
      Reservation joined = Reservation.join(System.getenv("HELD"));
      MpsInfo mps = new Device(0).mps();
      try (Reservation own = new Device(0).reserve(8);
          Lease lease = joined.acquire(24)) {
        ReservationInfo info = joined.info();
        System.out.println(
            info.id() + " " + lease.smCount() + " " + info.joined() + " " + info.mps() + " " + mps);
        System.out.println(own.info().mps() + " " + own.info().mpsThreadPercentage());
        System.out.println(Reservation.live().stream().anyMatch(one -> one.name().equals(NAME)));
        System.in.read();
      }
    }
  }

  @Test
  void aReservationLastsUntilAllWhoJoinedHaveEnded() throws Exception {
    ReservationTest.setMode(folder, "rwx------");
    ReservationParams whole = ReservationParams.of(132).withFolder(folder);
    Reservation held = device.reserve(ReservationParams.of(64).withName(NAME).withFolder(folder));
    Child child = Child.of(Joiner.class.getName(), "-ea");
    child.environment().put("HELD", held.token());
    child.environment().put("GCX_RESERVATION_DIR", folder.toString());
    child.environment().put("GCX_SIM_MPS", "1");
    child.environment().put("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100");
    Process other = child.start();
    try (BufferedReader printed = other.inputReader()) {
      assertEquals(
          held.info().id() + " 24 true OFF MpsInfo[state=ON, threadPercentage=100.0]",
          printed.readLine());
      assertEquals("ON 100.0", printed.readLine());
      assertEquals("true", printed.readLine());
      held.close();
      List<LiveReservation> live = Reservation.live(folder);
      assertEquals(2, live.size());
      LiveReservation own =
          live.stream().filter(one -> one.mps() == MpsState.ON).findAny().orElseThrow();
      assertEquals((int) other.pid(), own.pid());
      assertEquals(100.0, own.mpsThreadPercentage());
      refused(
          GcxException.AlreadyAcquired.class,
          "process " + other.pid() + " (java) has 8",
          () -> device.reserve(whole));
      CompletableFuture<Reservation> all =
          CompletableFuture.supplyAsync(
              () -> device.reserve(whole.withTimeout(Duration.ofSeconds(30))));
      while (Reservation.live(folder).size() != 3) {
        TimeUnit.MILLISECONDS.sleep(2);
      }
      other.destroyForcibly();
      all.get().close();
      assertEquals(List.of(), Reservation.live(folder));
    } finally {
      other.destroyForcibly().waitFor();
    }
  }

  /** Holds 16 SMs out of a reservation that another process has, and tells of its list entry. */
  static final class Inside {
    public static void main(String[] arguments) {
      // By this path, as a process in a partition opens the driver that is behind its stub.
      Gcx.openDriver("/./." + Gcx.simulatorPath());
      try (Reservation part = new Device(0).reserve(16)) {
        LiveReservation listed =
            Reservation.live().stream()
                .filter(one -> one.id() == part.info().id())
                .findAny()
                .orElseThrow();
        System.out.println(listed.parent() + " " + listed.atoms());
      }
    }
  }

  /**
   * What gcx exec tells its command about the SMs of a reservation, as reservation_parts_test.cpp
   * has it.
   */
  private static String planAround(LiveReservation outer, String token) {
    String atoms = outer.atoms().stream().map(String::valueOf).collect(Collectors.joining(","));
    return "gcx-exec-1 driver=/x shim=/x device="
        + outer.deviceUuid().toString().replace("-", "")
        + " family=coscheduled sms="
        + outer.smCount().getAsInt()
        + " of="
        + outer.atomCount()
        + " atoms="
        + atoms
        + " token="
        + token;
  }

  @Test
  void reservationInsideAnotherHasAParent() throws Exception {
    ReservationTest.setMode(folder, "rwx------");
    try (Reservation outer = device.reserve(ReservationParams.of(24).withFolder(folder))) {
      LiveReservation listed = Reservation.live(folder).get(0);
      assertEquals(OptionalLong.empty(), listed.parent());
      Child child = Child.of(Inside.class.getName(), "-ea");
      child.environment().put("GCX_RESERVATION_DIR", folder.toString());
      child.environment().put("GCX_EXEC_PLAN", planAround(listed, outer.token()));
      child.environment().put("GCX_SIM", System.getenv("GCX_DRIVER").substring("sim:".length()));
      assertEquals(
          List.of(OptionalLong.of(outer.info().id()) + " " + listed.atoms().subList(0, 2)),
          child.run(0));
      assertEquals(1, Reservation.live(folder).size());
    }
  }
}
