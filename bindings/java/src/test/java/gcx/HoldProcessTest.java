package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A hold that another process joins, under MPS, and that ends when the process is killed. */
@Timeout(60)
class HoldProcessTest {
  private static final String NAME = "zwölf \uD83D\uDE00";

  @TempDir private Path folder;
  private final Device device = new Device(0);

  /** Joins a hold, tells of it, and keeps it until it is ended. */
  static final class Joiner {
    public static void main(String[] arguments) throws IOException {
      Hold joined = Hold.join(System.getenv("HELD"));
      MpsInfo mps = new Device(0).mps();
      try (Hold own = new Device(0).hold(8);
          Lease lease = joined.acquire(24)) {
        HoldInfo info = joined.info();
        System.out.println(
            info.id() + " " + lease.smCount() + " " + info.joined() + " " + info.mps() + " " + mps);
        System.out.println(own.info().mps() + " " + own.info().mpsThreadPercentage());
        System.out.println(Hold.live().stream().anyMatch(one -> one.name().equals(NAME)));
        System.in.read();
      }
    }
  }

  @Test
  void aHoldLastsUntilAllWhoJoinedHaveEnded() throws Exception {
    HoldTest.setMode(folder, "rwx------");
    HoldRequest whole = HoldRequest.of(132).withFolder(folder);
    Hold held = device.hold(HoldRequest.of(64).withName(NAME).withFolder(folder));
    Child child = Child.of(Joiner.class.getName(), "-ea");
    child.environment().put("HELD", held.token());
    child.environment().put("GCX_HOLD_FOLDER", folder.toString());
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
      List<LiveHold> live = Hold.live(folder);
      assertEquals(2, live.size());
      LiveHold own = live.stream().filter(one -> one.mps() == MpsState.ON).findAny().orElseThrow();
      assertEquals((int) other.pid(), own.pid());
      assertEquals(100.0, own.mpsThreadPercentage());
      refused(
          GcxException.AlreadyAcquired.class,
          "process " + other.pid() + " (java) has 8",
          () -> device.hold(whole));
      CompletableFuture<Hold> all =
          CompletableFuture.supplyAsync(
              () -> device.hold(whole.withTimeout(Duration.ofSeconds(30))));
      while (Hold.live(folder).size() != 3) {
        TimeUnit.MILLISECONDS.sleep(2);
      }
      other.destroyForcibly();
      all.get().close();
      assertEquals(List.of(), Hold.live(folder));
    } finally {
      other.destroyForcibly().waitFor();
    }
  }
}
