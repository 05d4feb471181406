package gcx;

import java.util.function.ObjIntConsumer;

/**
 * What concerns the whole process: the driver, the queues, the log. Every method may be called from
 * any thread.
 */
public final class Gcx {
  private static final Object LOG = new Object();

  /** The receiver, to which the library refers weakly: it lives as long as this class. */
  private static ObjIntConsumer<byte[]> log;

  private Gcx() {}

  /** {@return the library's version: 10000 * major + 100 * minor + patch} Opens no driver. */
  public static int version() {
    return Functions.gcx_version();
  }

  /**
   * Opens a driver, before another one was opened. The first call that needs a driver opens it as
   * with null.
   *
   * @param driver null or empty for the open one, else the environment's GCX_DRIVER, else
   *     libcuda.so.1; {@code sim:SPEC} for a simulated driver, such as {@code sim:h100@13.0};
   *     anything else is a path or name of a library
   * @see Raw#gcx_driver_open
   */
  public static void openDriver(String driver) {
    if (NativeLibrary.isSimulated(driver)) {
      version(); // loads the library, which creates the folder
      NativeLibrary.provideSimulation();
    }
    Functions.gcx_driver_open(driver);
  }

  /** {@return version, name and capabilities of the driver} Opens one if none is open. */
  public static DriverInfo driver() {
    return Functions.gcx_driver_get_info();
  }

  /**
   * Returns the path of the simulated driver, for programs that start others on it. Opens no
   * driver.
   *
   * @return the path, valid until this process ends
   * @throws GcxException.DriverNotFound it does not exist
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

  /** {@return how many hardware queues the partitions of the process share} Opens no driver. */
  public static QueueInfo queues() {
    return Functions.gcx_queue_get_info();
  }

  /**
   * Sets CUDA_DEVICE_MAX_CONNECTIONS in the process's environment, unless that is as high already.
   * Call it at the beginning of a program, while no other thread reads the environment. {@link
   * System#getenv()}, and processes that Java starts, don't see the change.
   *
   * @param connections 1 to 32
   * @see Raw#gcx_queue_request_connections
   */
  public static void requestConnections(int connections) {
    if (connections < 0) {
      throw new GcxException.InvalidValue("negative number of connections: " + connections);
    }
    Functions.gcx_queue_request_connections(connections);
  }

  /**
   * Makes libcuda and cudart report, in a thread whose current context is a green context, that
   * context's SMs as the device's. Call it at the beginning of a program, before the first method
   * that opens the driver, JCuda, or any CUDA library loads libcuda. docs/explanation/counts.md
   * explains which libraries use the answer. Tested only on the simulated driver so far.
   *
   * @see Raw#gcx_driver_report_partition_counts
   */
  public static void reportPartitionCounts() {
    version(); // loads the library, which creates the folder
    NativeLibrary.provideCounts();
    Functions.gcx_driver_report_partition_counts();
  }

  /**
   * Sends the log up to a level to a receiver. Without one nothing is printed, unless the
   * environment's GCX_LOG is error, warning, info or debug, which prints to standard error.
   *
   * <p>To System.Logger: {@code Gcx.setLog(LogLevel.INFO, (level, text) ->
   * System.getLogger("gcx").log(System.Logger.Level.INFO, text))}.
   *
   * <p>The process has one receiver, the last that was set, for the calls of all class loaders that
   * have this package. The receiver does not keep its class loader alive, and ends with it.
   *
   * @param level the last level that is sent
   * @param receiver gets the messages; null for the default
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
   * {@return what a result means in general, in one sentence} Opens no driver.
   *
   * @param result the result
   */
  public static String describe(Result result) {
    return Functions.gcx_result_string(result.code());
  }
}
