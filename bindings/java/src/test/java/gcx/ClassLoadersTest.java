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

/** Several class loaders of one JVM that have the package, like the applications of a server. */
class ClassLoadersTest {
  private static final String REFUSED = "refused";

  @TempDir Path folder;

  /** The package in a class loader. */
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

    /** Sets a receiver that counts the messages about requests for too many SMs. */
    void setLog(AtomicInteger count) throws ReflectiveOperationException {
      Object receiver =
          Proxy.newProxyInstance(
              loader,
              new Class<?>[] {of("LogReceiver")},
              (proxy, method, arguments) -> {
                if (arguments[1].toString().contains("1000 SMs")) {
                  count.incrementAndGet();
                }
                return null;
              });
      of("Gcx")
          .getMethod("setLog", of("LogLevel"), of("LogReceiver"))
          .invoke(null, of("LogLevel").getField("DEBUG").get(null), receiver);
    }

    /** Requests more SMs than the device has, which logs a message. */
    String request() throws ReflectiveOperationException {
      Object device = of("Device").getConstructor(int.class).newInstance(0);
      try {
        of("Device").getMethod("acquire", long.class).invoke(device, 1000L);
        return "acquired";
      } catch (InvocationTargetException refused) {
        return refused.getCause() instanceof RuntimeException ? REFUSED : refused.toString();
      }
    }
  }

  /** Creates an application that sets a receiver, and leaves it to the collector. */
  private static WeakReference<ClassLoader> deploy(AtomicInteger count) throws Exception {
    Application application = new Application();
    application.setLog(count);
    application.request();
    application.loader.close();
    return new WeakReference<>(application.loader);
  }

  /** The receiver's class loader is collected while threads of another one log. */
  static final class Unload {
    public static void main(String[] arguments) throws Exception {
      Application other = new Application();
      other.request();
      AtomicBoolean end = new AtomicBoolean();
      ExecutorService pool = Executors.newCachedThreadPool();
      List<Future<Integer>> working = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        working.add(pool.submit(() -> requestUntil(end, other)));
      }
      int collected = 0;
      for (int round = 0; round < 6; round++) {
        WeakReference<ClassLoader> loader = pool.submit(() -> deploy(new AtomicInteger())).get();
        // Compiled code that is running may keep one reachable.
        for (int i = 0; i < 100 && loader.get() != null; i++) {
          System.gc();
          TimeUnit.MILLISECONDS.sleep(20);
        }
        collected += loader.get() == null ? 1 : 0;
        other.request();
      }
      System.out.println("collected during calls: " + (collected > 0));
      end.set(true);
      for (Future<Integer> worker : working) {
        worker.get();
      }
      pool.shutdown();
      untilOneBridgeIsLeft();
      System.out.println(other.request());
    }

    private static int requestUntil(AtomicBoolean end, Application application) throws Exception {
      int requested = 0;
      while (!end.get()) {
        application.request();
        requested++;
        if (requested % 16 == 0) {
          TimeUnit.MILLISECONDS.sleep(1); // so that the collector can run
        }
      }
      return requested;
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
  void receiverOfCollectedClassLoaderIsForgotten() throws Exception {
    assertEquals(
        List.of("collected during calls: true", "bridges: 1", REFUSED),
        Child.of(Unload.class.getName()).run(0));
  }

  /** Prints how many messages the receivers of two applications got. */
  static final class Share {
    public static void main(String[] arguments) throws Exception {
      Application first = new Application();
      Application second = new Application();
      AtomicInteger byFirst = new AtomicInteger();
      AtomicInteger bySecond = new AtomicInteger();
      first.setLog(byFirst);
      first.request();
      second.request();
      Thread thread = new Thread(() -> requestQuietly(second));
      thread.start();
      thread.join();
      System.out.println(byFirst + " " + bySecond);
      second.setLog(bySecond);
      first.request();
      second.request();
      System.out.println(byFirst + " " + bySecond);
    }

    private static void requestQuietly(Application application) {
      try {
        application.request();
      } catch (ReflectiveOperationException impossible) {
        throw new AssertionError(impossible);
      }
    }
  }

  @Test
  void receiverGetsMessagesOfOtherClassLoaders() throws Exception {
    assertEquals(List.of("3 0", "3 2"), Child.of(Share.class.getName()).run(0));
  }

  /** Sets a receiver after the first receiver's class loader became unreachable. */
  static final class Outlive {
    public static void main(String[] arguments) throws Exception {
      Application second = new Application();
      AtomicInteger count = new AtomicInteger();
      Thread thread = new Thread(() -> deployQuietly());
      thread.start();
      thread.join();
      second.setLog(count);
      Unload.untilOneBridgeIsLeft();
      second.request();
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
  void receiverStaysWhenAFormerOneIsCollected() throws Exception {
    assertEquals(List.of("bridges: 1", "1"), Child.of(Outlive.class.getName()).run(0));
  }

  /** Uses the package in three class loaders. */
  static final class Three {
    public static void main(String[] arguments) throws Exception {
      List<Application> all = List.of(new Application(), new Application(), new Application());
      for (Application application : all) {
        System.out.println(application.request());
      }
    }
  }

  /** Uses the package for the first time in many class loaders at once. */
  static final class FirstCalls {
    public static void main(String[] arguments) throws Exception {
      ExecutorService pool = Executors.newCachedThreadPool();
      CyclicBarrier start = new CyclicBarrier(6);
      List<Future<String>> requested = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        Application application = new Application();
        requested.add(
            pool.submit(
                () -> {
                  start.await();
                  return application.request();
                }));
      }
      for (Future<String> one : requested) {
        System.out.println(one.get());
      }
      pool.shutdown();
    }
  }

  @Test
  void firstCallsOfManyClassLoadersSucceed() throws Exception {
    for (int round = 0; round < 4; round++) {
      assertEquals(Collections.nCopies(6, REFUSED), Child.of(FirstCalls.class.getName()).run(0));
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
  void libraryPathFurtherClassLoadersLoadCopies() throws Exception {
    Path place = unpacked();
    Child child = Child.of(Three.class.getName(), "-Dgcx.library.path=" + place);
    assertEquals(List.of(REFUSED, REFUSED, REFUSED), child.run(0));
    // Without a usable folder for temporary files, about which newer JVMs warn.
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
