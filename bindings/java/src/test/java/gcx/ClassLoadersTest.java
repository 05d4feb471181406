package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
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
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
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

  private static <T> FutureTask<T> start(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    new Thread(task).start();
    return task;
  }

  /** Sets a receiver of a new application, which is unreachable afterwards, in another thread. */
  private static WeakReference<ClassLoader> deploy() throws Exception {
    return start(
            () -> {
              Application application = new Application();
              application.setLog(new AtomicInteger());
              application.request();
              application.loader.close();
              return new WeakReference<ClassLoader>(application.loader);
            })
        .get();
  }

  private static long bridges() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/maps")).stream()
        .filter(line -> line.contains("r-xp") && line.contains("libgcx-java.so"))
        .count();
  }

  /** The JVM unloads a class loader's library some time after it has collected the loader. */
  private static void awaitOneBridge() throws Exception {
    for (int i = 0; i < 400 && bridges() > 1; i++) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(20);
    }
    System.out.println("bridges: " + bridges());
  }

  /** The receiver's class loader is collected while threads of another one log. */
  static final class Unload {
    public static void main(String[] arguments) throws Exception {
      Application other = new Application();
      other.request();
      AtomicBoolean end = new AtomicBoolean();
      List<FutureTask<Integer>> working = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        working.add(start(() -> requestUntil(end, other)));
      }
      boolean collected = false;
      for (int round = 0; round < 6; round++) {
        WeakReference<ClassLoader> loader = deploy();
        // Compiled code that is running may keep one reachable.
        for (int i = 0; i < 100 && loader.get() != null; i++) {
          System.gc();
          TimeUnit.MILLISECONDS.sleep(20);
        }
        collected |= loader.get() == null;
        other.request();
      }
      System.out.println("collected during calls: " + collected);
      end.set(true);
      for (FutureTask<Integer> worker : working) {
        worker.get();
      }
      awaitOneBridge();
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
      start(second::request).get();
      System.out.println(byFirst + " " + bySecond);
      second.setLog(bySecond);
      first.request();
      second.request();
      System.out.println(byFirst + " " + bySecond);
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
      deploy();
      second.setLog(count);
      awaitOneBridge();
      second.request();
      System.out.println(count);
    }
  }

  @Test
  void receiverStaysWhenAFormerOneIsCollected() throws Exception {
    assertEquals(List.of("bridges: 1", "1"), Child.of(Outlive.class.getName()).run(0));
  }

  /** Uses the package in three class loaders, one after the other. */
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
      CyclicBarrier begin = new CyclicBarrier(6);
      List<FutureTask<String>> requests = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        Application application = new Application();
        requests.add(
            start(
                () -> {
                  begin.await();
                  return application.request();
                }));
      }
      for (FutureTask<String> one : requests) {
        System.out.println(one.get());
      }
    }
  }

  @Test
  void firstCallsOfManyClassLoadersSucceed() throws Exception {
    for (int round = 0; round < 4; round++) {
      assertEquals(Collections.nCopies(6, REFUSED), Child.of(FirstCalls.class.getName()).run(0));
    }
  }

  @Test
  void libraryPathFurtherClassLoadersLoadCopies() throws Exception {
    Path place = Support.unpack(folder.resolve("native"));
    for (Path temporary : List.of(folder, folder.resolve("missing"))) {
      List<String> lines =
          Child.of(
                  Three.class.getName(),
                  "-Dgcx.library.path=" + place,
                  "-Djava.io.tmpdir=" + temporary)
              .run(0);
      // Newer JVMs warn about the missing folder.
      lines = lines.stream().filter(line -> !line.startsWith("WARNING: java.io.tmpdir")).toList();
      assertEquals(List.of(REFUSED, REFUSED, REFUSED), lines);
    }
    try (java.util.stream.Stream<Path> left = Files.list(place)) {
      assertEquals(4, left.count());
    }
  }
}
