package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.function.Executable;

/** What several tests need. */
final class Support {
  /** A name beyond ASCII, with a character of two UTF-16 units. */
  static final String NAME = "zwölf \uD83D\uDE00";

  private Support() {}

  /** Waits until the garbage collector and the cleaner have closed all leases and contexts. */
  static void awaitNothingAlive() throws InterruptedException {
    for (int i = 0; i < 200 && !(Lease.live().isEmpty() && Context.live().isEmpty()); i++) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(20);
      Cache.trim(64); // releases contexts that closed leases kept until their work was done
    }
    assertEquals(List.of(), Lease.live());
    assertEquals(List.of(), Context.live());
  }

  static void awaitLeases(int count) throws InterruptedException {
    while (Lease.live().size() != count) {
      TimeUnit.MILLISECONDS.sleep(1);
    }
  }

  static void awaitReservations(Path folder, int count) throws InterruptedException {
    while (Reservation.live(folder).size() != count) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(2);
    }
  }

  static <T extends GcxException> T refused(Class<T> kind, String part, Executable call) {
    T error = assertThrows(kind, call);
    assertTrue(error.getMessage().contains(part), error.getMessage());
    return error;
  }

  /** Gives a folder the mode that reservations and published leases require. */
  static void makePrivate(Path folder) throws IOException {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
  }

  /** Copies the libraries of the jar into a new folder. */
  static Path unpack(Path folder) throws IOException {
    Files.createDirectories(folder.resolve("gcx"));
    for (String name :
        List.of("libgcx.so.1", "libgcx-java-log.so.1", "libgcx-java.so", "gcx/libgcx-sim.so")) {
      try (InputStream library = Gcx.class.getResourceAsStream("/native/linux-x86_64/" + name)) {
        Files.copy(library, folder.resolve(name));
      }
    }
    return folder;
  }

  static SmResource part(int smCount) {
    return new Device(0).sms().split(smCount).groups().get(0);
  }

  /** Returns a pool of virtual threads, by reflection since this is compiled for Java 17. */
  static ExecutorService virtualThreads() {
    try {
      return (ExecutorService)
          Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    } catch (ReflectiveOperationException older) {
      throw new AssertionError(older);
    }
  }

  static boolean hasVirtualThreads() {
    return Runtime.version().feature() >= 21;
  }
}
