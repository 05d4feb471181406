package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Several class loaders of one JVM that have the package, as applications of one server have. */
class ClassLoadersTest {
  private static final String REFUSED = "refused";

  @TempDir Path folder;

  /** One class loader's package, and what its log receiver was given. */
  private static final class Application {
    final URLClassLoader loader;

    Application() throws IOException {
      List<URL> places = new ArrayList<>();
      for (String place : System.getProperty("java.class.path").split(":")) {
        places.add(Path.of(place).toUri().toURL());
      }
      loader = new URLClassLoader(places.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }

    private Class<?> of(String name) throws ReflectiveOperationException {
      return loader.loadClass("gcx." + name);
    }

    /** Counts messages that tell of a request that can't be met. */
    void setLog(AtomicInteger count) throws ReflectiveOperationException {
      Object receiver =
          Proxy.newProxyInstance(
              loader,
              new Class<?>[] {of("LogReceiver")},
              (proxy, method, arguments) -> {
                if (arguments[1].toString().contains("asked for 1000 SMs")) {
                  count.incrementAndGet();
                }
                return null;
              });
      of("Gcx")
          .getMethod("setLog", of("LogLevel"), of("LogReceiver"))
          .invoke(null, of("LogLevel").getField("DEBUG").get(null), receiver);
    }

    /** Asks for more SMs than there are, which the log has a message of. */
    String ask() throws ReflectiveOperationException {
      Object device = of("Device").getConstructor(int.class).newInstance(0);
      try {
        of("Device").getMethod("acquire", long.class).invoke(device, 1000L);
        return "given";
      } catch (InvocationTargetException refused) {
        return refused.getCause() instanceof RuntimeException ? REFUSED : refused.toString();
      }
    }
  }

  /** Makes an application that sets a receiver; nothing refers to it afterwards. */
  private static WeakReference<ClassLoader> deploy(AtomicInteger count) throws Exception {
    Application application = new Application();
    application.setLog(count);
    application.ask();
    application.loader.close();
    return new WeakReference<>(application.loader);
  }

  /** The receiver's class loader is collected while threads of another one log. */
  static final class Unload {
    public static void main(String[] arguments) throws Exception {
      Application other = new Application();
      other.ask();
      AtomicBoolean end = new AtomicBoolean();
      ExecutorService pool = Executors.newCachedThreadPool();
      List<Future<Integer>> working = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        working.add(pool.submit(() -> askUntil(end, other)));
      }
      int collected = 0;
      for (int round = 0; round < 6; round++) {
        WeakReference<ClassLoader> loader = pool.submit(() -> deploy(new AtomicInteger())).get();
        // Compiled code that runs may keep one.
        for (int i = 0; i < 100 && loader.get() != null; i++) {
          System.gc();
          TimeUnit.MILLISECONDS.sleep(20);
        }
        collected += loader.get() == null ? 1 : 0;
        other.ask();
      }
      System.out.println("collected beside others' calls: " + (collected > 0));
      end.set(true);
      for (Future<Integer> worker : working) {
        worker.get();
      }
      pool.shutdown();
      untilOneBridgeIsLeft();
      System.out.println(other.ask());
    }

    private static int askUntil(AtomicBoolean end, Application application) throws Exception {
      int asked = 0;
      while (!end.get()) {
        application.ask();
        asked++;
        if (asked % 16 == 0) {
          TimeUnit.MILLISECONDS.sleep(1); // the collector runs beside this
        }
      }
      return asked;
    }

    private static long bridges() throws IOException {
      return Files.readAllLines(Path.of("/proc/self/maps")).stream()
          .filter(line -> line.contains("r-xp") && line.contains("libgcx-java.so"))
          .count();
    }

    /** The JVM unloads a class loader's library some time after it has collected the loader. */
    static void untilOneBridgeIsLeft() throws Exception {
      for (int i = 0; i < 400 && bridges() > 1; i++) {
        System.gc();
        TimeUnit.MILLISECONDS.sleep(20);
      }
      System.out.println("bridges: " + bridges());
    }
  }

  @Test
  void receiver_classLoaderCollected_isForgotten() throws Exception {
    assertEquals(
        List.of("collected beside others' calls: true", "bridges: 1", REFUSED),
        Child.of(Unload.class.getName()).run(0));
  }

  /** Two applications; prints how many messages each receiver was given. */
  static final class Share {
    public static void main(String[] arguments) throws Exception {
      Application first = new Application();
      Application second = new Application();
      AtomicInteger byFirst = new AtomicInteger();
      AtomicInteger bySecond = new AtomicInteger();
      first.setLog(byFirst);
      first.ask();
      second.ask();
      Thread thread = new Thread(() -> askQuietly(second));
      thread.start();
      thread.join();
      System.out.println(byFirst + " " + bySecond);
      second.setLog(bySecond);
      first.ask();
      second.ask();
      System.out.println(byFirst + " " + bySecond);
    }

    private static void askQuietly(Application application) {
      try {
        application.ask();
      } catch (ReflectiveOperationException impossible) {
        throw new AssertionError(impossible);
      }
    }
  }

  @Test
  void receiver_callOfAnotherClassLoader_isCalled() throws Exception {
    assertEquals(List.of("3 0", "3 2"), Child.of(Share.class.getName()).run(0));
  }

  /** The first receiver's class loader is collected, the second's stays. */
  static final class Outlive {
    public static void main(String[] arguments) throws Exception {
      Application second = new Application();
      AtomicInteger count = new AtomicInteger();
      Thread thread = new Thread(() -> deployQuietly());
      thread.start();
      thread.join();
      second.setLog(count);
      Unload.untilOneBridgeIsLeft();
      second.ask();
      System.out.println(count);
    }

    private static void deployQuietly() {
      try {
        deploy(new AtomicInteger());
      } catch (Exception problem) {
        throw new AssertionError(problem);
      }
    }
  }

  @Test
  void receiver_formerReceiverCollected_staysInForce() throws Exception {
    assertEquals(List.of("bridges: 1", "1"), Child.of(Outlive.class.getName()).run(0));
  }

  /** Uses the package in three class loaders. */
  static final class Three {
    public static void main(String[] arguments) throws Exception {
      List<Application> all = List.of(new Application(), new Application(), new Application());
      for (Application application : all) {
        System.out.println(application.ask());
      }
    }
  }

  /** Uses the package for the first time in many class loaders at once. */
  static final class Deferred {
    public static void main(String[] arguments) throws Exception {
      ExecutorService pool = Executors.newCachedThreadPool();
      CyclicBarrier start = new CyclicBarrier(6);
      List<Future<String>> asked = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        Application application = new Application();
        asked.add(
            pool.submit(
                () -> {
                  start.await();
                  return application.ask();
                }));
      }
      for (Future<String> one : asked) {
        System.out.println(one.get());
      }
      pool.shutdown();
    }
  }

  @Test
  void firstCall_manyClassLoadersAtOnce_succeeds() throws Exception {
    for (int round = 0; round < 4; round++) {
      assertEquals(Collections.nCopies(6, REFUSED), Child.of(Deferred.class.getName()).run(0));
    }
  }

  private Path unpacked() throws IOException {
    Path place = Files.createDirectories(folder.resolve("native/gcx")).getParent();
    for (String name :
        List.of("libgcx.so.1", "libgcx-java-log.so.1", "libgcx-java.so", "gcx/libgcx-sim.so")) {
      try (InputStream library = Gcx.class.getResourceAsStream("/native/linux-x86_64/" + name)) {
        Files.copy(library, place.resolve(name));
      }
    }
    return place;
  }

  @Test
  void libraryPath_furtherClassLoaders_loadCopies() throws Exception {
    Path place = unpacked();
    Child child = Child.of(Three.class.getName(), "-Dgcx.library.path=" + place);
    assertEquals(List.of(REFUSED, REFUSED, REFUSED), child.run(0));
    // With a folder for temporary files that can't be used, of which newer JVMs warn.
    child =
        Child.of(
            Three.class.getName(),
            "-Dgcx.library.path=" + place,
            "-Djava.io.tmpdir=" + folder.resolve("missing"));
    List<String> lines = child.run(0);
    lines = lines.stream().filter(line -> !line.startsWith("WARNING: java.io.tmpdir")).toList();
    assertEquals(List.of(REFUSED, REFUSED, REFUSED), lines);
    try (java.util.stream.Stream<Path> left = Files.list(place)) {
      assertEquals(4, left.count());
    }
  }
}
