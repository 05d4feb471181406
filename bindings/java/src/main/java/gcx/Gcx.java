package gcx;

import java.util.function.ObjIntConsumer;

/**
 * What concerns the whole process: the driver, the queues, the log. Every method may be called from
 * any thread.
 */
public final class Gcx {
  private static final Object LOG = new Object();

  /** The receiver, which the library refers to weakly: it lives as long as this class. */
  private static ObjIntConsumer<byte[]> log;

  private Gcx() {}

  /**
   * The version of the library: 10000 * major + 100 * minor + patch. Opens no driver.
   *
   * @return the version
   */
  public static int version() {
    return Functions.gcx_version();
  }

  /**
   * Chooses the driver, before anything opened another, and opens it. The first call that needs a
   * driver opens it as with null.
   *
   * @param driver null or empty: the open one, else what the environment's GCX_DRIVER names, else
   *     libcuda.so.1; {@code sim:SPEC}: the simulated driver, such as {@code sim:h100@13.0};
   *     anything else: a path or name of a library
   * @throws GcxException.DriverAlreadyOpen another driver is open, for the rest of the process
   * @throws GcxException.DriverNotFound there is no such library
   */
  public static void openDriver(String driver) {
    if (NativeLibrary.isSimulated(driver)) {
      version(); // so that the library is loaded, and has a folder
      NativeLibrary.provideSimulation();
    }
    try {
      Functions.gcx_driver_open(driver);
    } catch (GcxException.AlreadyAcquired another) {
      throw new GcxException.DriverAlreadyOpen(
          another.code(), another.resultName(), another.detail());
    }
  }

  /**
   * The open driver. Opens one if none is.
   *
   * @return version and name
   */
  public static DriverInfo driver() {
    return Functions.gcx_driver_get_info();
  }

  /**
   * Whether the driver can do something.
   *
   * @param capability what
   * @return whether, and since which version
   */
  public static CapabilityInfo capability(Capability capability) {
    return Functions.gcx_capability_get_info(capability.number);
  }

  /**
   * The path of the simulated driver, for programs that start others on it. Opens no driver.
   *
   * @return the path, valid until this process ends
   * @throws GcxException.DriverNotFound it isn't there
   */
  public static String simulatorPath() {
    version();
    NativeLibrary.provideSimulation();
    String path = Functions.gcx_simulator_path();
    if (path == null) {
      throw new GcxException.DriverNotFound(Functions.gcx_last_error_message());
    }
    return path;
  }

  /**
   * How many of the hardware's queues the partitions of the process share. Opens no driver.
   *
   * @return the connections, and where their number comes from
   */
  public static QueueInfo queues() {
    return Functions.gcx_queue_get_info();
  }

  /**
   * Asks for connections, 1 to 32, before CUDA starts: sets CUDA_DEVICE_MAX_CONNECTIONS in the
   * process's environment, unless it holds as many or more. To be called at the beginning of a
   * program, since nothing may read the environment meanwhile. Java's own view of the environment,
   * which processes that it starts inherit too, stays as it was. Opens no driver.
   *
   * @param connections how many
   * @throws GcxException.NotPermitted CUDA has started with fewer: it is too late
   * @throws GcxException.InvalidValue it is not 1 to 32
   */
  public static void requestConnections(int connections) {
    if (connections < 0) {
      throw new GcxException.InvalidValue(connections + " is no number of connections");
    }
    Functions.gcx_queue_request_connections(connections);
  }

  /**
   * From now on libraries of this process are told the count of SMs that they have: a thread in
   * which a green context is current, by {@link Context#push()} or otherwise, is told that
   * context's SMs as the device's count, by CUDA's driver and by cudart. Other threads are told
   * what they were told before, and nothing runs elsewhere than before. Libraries ask when they set
   * something up, and keep the answer, cuBLAS that of its first handle for all of them. A cuBLAS
   * before 13.10 is told the device's count: with a partition's it computes wrong products.
   *
   * <p>For good, and doing it twice does it once. To be called at the beginning of a program,
   * before anything loads libcuda: the first method that opens the driver, JCuda, any library of
   * CUDA's. To find libcuda it may start a child process for a moment. Tested on the simulated
   * driver alone so far.
   *
   * @throws GcxException.NotPermitted libcuda is loaded already
   * @throws GcxException.DriverNotFound there is no driver library, or none that can be loaded
   * @throws GcxException no file or pipe can be made ({@link Result#OPERATING_SYSTEM})
   */
  public static void reportPartitionCounts() {
    version(); // so that the library is loaded, and has a folder
    NativeLibrary.provideCounts();
    Functions.gcx_driver_report_partition_counts();
  }

  /**
   * Whether {@link #reportPartitionCounts()} has succeeded in this process. Opens no driver.
   *
   * @return whether libraries are told partitions' counts
   */
  public static boolean reportsPartitionCounts() {
    return Functions.gcx_driver_reports_partition_counts() != 0;
  }

  /**
   * Sends the log up to a level to a receiver. Without one nothing is printed, unless the
   * environment's GCX_LOG is error, warning, info or debug, which prints to standard error.
   *
   * <p>To System.Logger: {@code Gcx.setLog(LogLevel.INFO, (level, text) ->
   * System.getLogger("gcx").log(System.Logger.Level.INFO, text))}.
   *
   * <p>The log is the process's: the last receiver that was set gets the messages of the calls of
   * all class loaders that have this package. It does not keep its class loader alive, and goes
   * with it.
   *
   * @param level the last level that is sent
   * @param receiver is given the messages; null for the default
   */
  public static void setLog(LogLevel level, LogReceiver receiver) {
    ObjIntConsumer<byte[]> next = receiver == null ? null : Upcalls.shared(receiver);
    int number = level.number;
    synchronized (LOG) {
      Functions.gcx_log_set_callback(number, next);
      log = next;
    }
  }

  /**
   * What a result means in general, in one sentence. Opens no driver.
   *
   * @param result the result
   * @return the sentence
   */
  public static String describe(Result result) {
    return Functions.gcx_result_string(result.code());
  }
}
