package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The driver, the kept contexts, the log. */
class DriverTest {
  @Test
  void theDriverIsTheSimulatedOne() {
    DriverInfo driver = Gcx.driver();
    assertTrue(driver.simulated());
    assertTrue(System.getenv("GCX_DRIVER").contains("@" + driver.version() / 1000 + "."));
    assertTrue(driver.headerVersion() >= 12040);
    assertTrue(Files.exists(Path.of(Gcx.simulatorPath())));
    Gcx.openDriver(null);
    Gcx.openDriver(System.getenv("GCX_DRIVER"));
    assertThrows(GcxException.DriverAlreadyOpen.class, () -> Gcx.openDriver("sim:a100@13.0"));
    GcxException hidden =
        assertThrows(GcxException.InvalidValue.class, () -> Gcx.openDriver("libcuda.so.1\0x"));
    assertTrue(hidden.getMessage().contains("the character 0"), hidden.getMessage());
  }

  @Test
  void namesOfAnyLanguageReachTheLibraryAndComeBack() {
    GcxException error =
        assertThrows(
            GcxException.DriverAlreadyOpen.class, () -> Gcx.openDriver("Jürgen-\uD83D\uDE00"));
    assertTrue(error.getMessage().contains("Jürgen-\uD83D\uDE00"), error.getMessage());
  }

  @Test
  void capabilitiesAreTold() {
    for (Capability capability : Capability.values()) {
      CapabilityInfo info = Gcx.capability(capability);
      assertEquals(info.available(), info.requiredVersion() <= Gcx.driver().version());
      assertFalse(info.name().isEmpty());
    }
  }

  @Test
  void theLogGoesToAReceiver() {
    List<String> seen = Collections.synchronizedList(new ArrayList<>());
    Cache.trim(0); // a context that another test left would be taken, and none be made
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
      Context.createPrivate(new Device(0).sms().split(56).groups().get(0)).close();
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
  void setLog_nullLevel_keepsTheReceiver() {
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
}
