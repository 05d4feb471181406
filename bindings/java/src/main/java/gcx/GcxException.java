package gcx;

/**
 * Something that gcx or the driver refused. The classes in here are the kinds of errors; what fits
 * none of them is a plain {@code GcxException}.
 */
public class GcxException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The result's number. */
  private final int code;

  /** The result's name. */
  private final String resultName;

  /** What was wrong, in the C library's words. */
  private final String detail;

  GcxException(int code, String resultName, String detail) {
    super(Names.inJava(detail) + " [" + resultName + ", " + code + "]");
    this.code = code;
    this.resultName = resultName;
    this.detail = detail;
  }

  GcxException(Result result, String detail) {
    this(result.code(), "GCX_ERROR_" + result.name(), detail);
  }

  /**
   * The result.
   *
   * @return the result; {@link Result#UNKNOWN} of a number that this version has no name for
   */
  public Result result() {
    return Result.of(code);
  }

  /**
   * The number of the result, which is that of a CUresult.
   *
   * @return the number
   */
  public int code() {
    return code;
  }

  /**
   * The name of the result in C.
   *
   * @return the name, such as {@code GCX_ERROR_INVALID_VALUE}
   */
  public String resultName() {
    return resultName;
  }

  /**
   * What was wrong, the values, and what would work, in the C library's words.
   *
   * @return the C library's message
   */
  public String detail() {
    return detail;
  }

  static GcxException of(int code, String name, String detail) {
    return switch (Result.of(code)) {
      case INVALID_VALUE -> new InvalidValue(code, name, detail);
      case OUT_OF_MEMORY -> new OutOfMemory(code, name, detail);
      case NOT_INITIALIZED, DEINITIALIZED -> new NotInitialized(code, name, detail);
      case NO_DEVICE -> new NoDevice(code, name, detail);
      case INVALID_DEVICE -> new InvalidDevice(code, name, detail);
      case INVALID_CONTEXT -> new InvalidContext(code, name, detail);
      case ALREADY_ACQUIRED -> new AlreadyAcquired(code, name, detail);
      case CONTEXT_ALREADY_IN_USE -> new ContextInUse(code, name, detail);
      case SHARED_OBJECT_INIT_FAILED, FILE_NOT_FOUND -> new DriverNotFound(code, name, detail);
      case INVALID_HANDLE -> new InvalidHandle(code, name, detail);
      case NOT_FOUND -> new NotFound(code, name, detail);
      case NOT_READY -> new NotReady(code, name, detail);
      case CONTEXT_IS_DESTROYED -> new ContextDestroyed(code, name, detail);
      case ILLEGAL_ADDRESS,
          LAUNCH_OUT_OF_RESOURCES,
          LAUNCH_TIMEOUT,
          ASSERT,
          HARDWARE_STACK_ERROR,
          ILLEGAL_INSTRUCTION,
          MISALIGNED_ADDRESS,
          INVALID_ADDRESS_SPACE,
          INVALID_PC,
          LAUNCH_FAILED ->
          new Launch(code, name, detail);
      case COOPERATIVE_LAUNCH_TOO_LARGE -> new LaunchTooLarge(code, name, detail);
      case GRAPH_EXEC_UPDATE_FAILURE -> new GraphUpdate(code, name, detail);
      case NOT_PERMITTED -> new NotPermitted(code, name, detail);
      case NOT_SUPPORTED -> new NotSupported(code, name, detail);
      case STREAM_CAPTURE_UNSUPPORTED,
          STREAM_CAPTURE_INVALIDATED,
          STREAM_CAPTURE_MERGE,
          STREAM_CAPTURE_UNMATCHED,
          STREAM_CAPTURE_UNJOINED,
          STREAM_CAPTURE_ISOLATION,
          STREAM_CAPTURE_IMPLICIT,
          CAPTURED_EVENT,
          STREAM_CAPTURE_WRONG_THREAD ->
          new Capture(code, name, detail);
      case INVALID_RESOURCE_TYPE -> new InvalidResourceType(code, name, detail);
      case INVALID_RESOURCE_CONFIGURATION -> new ResourceConfiguration(code, name, detail);
      default -> new GcxException(code, name, detail);
    };
  }

  /** A value that can't be: a count of no SMs, a flag that doesn't exist. */
  public static final class InvalidValue extends GcxException {
    private static final long serialVersionUID = 1L;

    InvalidValue(int code, String name, String detail) {
      super(code, name, detail);
    }

    InvalidValue(String detail) {
      super(Result.INVALID_VALUE, detail);
    }
  }

  /** Memory is exhausted, of the host or of the device. */
  public static final class OutOfMemory extends GcxException {
    private static final long serialVersionUID = 1L;

    OutOfMemory(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** CUDA can't be used: the process is ending, or was forked off one that had used it. */
  public static final class NotInitialized extends GcxException {
    private static final long serialVersionUID = 1L;

    NotInitialized(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** The driver has no device. */
  public static final class NoDevice extends GcxException {
    private static final long serialVersionUID = 1L;

    NoDevice(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** There is no such device. */
  public static final class InvalidDevice extends GcxException {
    private static final long serialVersionUID = 1L;

    InvalidDevice(int code, String name, String detail) {
      super(code, name, detail);
    }

    InvalidDevice(String detail) {
      super(Result.INVALID_DEVICE, detail);
    }
  }

  /** Another context is current than the call needs, or none. */
  public static final class InvalidContext extends GcxException {
    private static final long serialVersionUID = 1L;

    InvalidContext(int code, String name, String detail) {
      super(code, name, detail);
    }

    InvalidContext(String detail) {
      super(Result.INVALID_CONTEXT, detail);
    }
  }

  /** Another driver is open already; a process uses one. */
  public static final class DriverAlreadyOpen extends GcxException {
    private static final long serialVersionUID = 1L;

    DriverAlreadyOpen(AlreadyAcquired same) {
      super(same.code(), same.resultName(), same.detail());
    }
  }

  /** Other leases hold the SMs, or others wait for them first. The message says who. */
  public static final class AlreadyAcquired extends GcxException {
    private static final long serialVersionUID = 1L;

    AlreadyAcquired(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** The context is current, so that it can't be closed. */
  public static final class ContextInUse extends GcxException {
    private static final long serialVersionUID = 1L;

    ContextInUse(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** There is no driver library, or it can't be loaded. */
  public static final class DriverNotFound extends GcxException {
    private static final long serialVersionUID = 1L;

    DriverNotFound(int code, String name, String detail) {
      super(code, name, detail);
    }

    DriverNotFound(String detail) {
      super(Result.FILE_NOT_FOUND, detail);
    }
  }

  /** The object is closed, or isn't what the call takes: of another device, or without times. */
  public static final class InvalidHandle extends GcxException {
    private static final long serialVersionUID = 1L;

    InvalidHandle(int code, String name, String detail) {
      super(code, name, detail);
    }

    InvalidHandle(String detail) {
      super(Result.INVALID_HANDLE, detail);
    }
  }

  /** What was asked for isn't known to gcx: a context or the SMs of a stream that others made. */
  public static final class NotFound extends GcxException {
    private static final long serialVersionUID = 1L;

    NotFound(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** It isn't known yet, or hasn't finished yet. */
  public static final class NotReady extends GcxException {
    private static final long serialVersionUID = 1L;

    NotReady(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /**
   * The device was reset, which ended its contexts, streams, events and leases: make them anew. Or
   * the lease of the stream was closed.
   */
  public static final class ContextDestroyed extends GcxException {
    private static final long serialVersionUID = 1L;

    ContextDestroyed(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** A kernel failed, which the driver reports at a later call: an illegal address, a trap. */
  public static final class Launch extends GcxException {
    private static final long serialVersionUID = 1L;

    Launch(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** A cooperative grid is larger than the SMs hold; the message has the largest. */
  public static final class LaunchTooLarge extends GcxException {
    private static final long serialVersionUID = 1L;

    LaunchTooLarge(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** Another captured graph hasn't the same nodes and order; the message says where. */
  public static final class GraphUpdate extends GcxException {
    private static final long serialVersionUID = 1L;

    GraphUpdate(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** The driver does not permit this here and now; or a call was given up. */
  public static final class NotPermitted extends GcxException {
    private static final long serialVersionUID = 1L;

    NotPermitted(int code, String name, String detail) {
      super(code, name, detail);
    }

    NotPermitted(String detail) {
      super(Result.NOT_PERMITTED, detail);
    }

    /** Of a wait that the interruption of its thread has given up. */
    NotPermitted byInterruption() {
      String reason = detail().replace("gcx_cancel_signal", "Thread.interrupt");
      return new NotPermitted(code(), resultName(), reason);
    }
  }

  /** The driver or the device lacks it; the message says which version has it. */
  public static final class NotSupported extends GcxException {
    private static final long serialVersionUID = 1L;

    NotSupported(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** The call can't be made while a stream captures a graph, or broke the capture. */
  public static final class Capture extends GcxException {
    private static final long serialVersionUID = 1L;

    Capture(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /** A resource is of another type than the call takes. */
  public static final class InvalidResourceType extends GcxException {
    private static final long serialVersionUID = 1L;

    InvalidResourceType(int code, String name, String detail) {
      super(code, name, detail);
    }
  }

  /**
   * The resources can't be split or combined like this: they don't fit, or overlap, or are of two
   * devices or families.
   */
  public static final class ResourceConfiguration extends GcxException {
    private static final long serialVersionUID = 1L;

    ResourceConfiguration(int code, String name, String detail) {
      super(code, name, detail);
    }
  }
}
