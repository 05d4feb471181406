package gcx;

/**
 * The results of the C library. Numbers and names are those of CUDA's CUresult.
 *
 * <p>{@code GCX_ERROR_INVALID_VALUE} is {@link #INVALID_VALUE} here.
 */
public enum Result {
  /** No error. */
  SUCCESS(0),
  /** An argument is outside its range, or a pointer is NULL. */
  INVALID_VALUE(1),
  /** Memory is exhausted, of the host or of the device. */
  OUT_OF_MEMORY(2),
  /** CUDA is not initialized, or the process was forked after it was. */
  NOT_INITIALIZED(3),
  /** CUDA is shutting down. */
  DEINITIALIZED(4),
  /** The profiler is disabled. */
  PROFILER_DISABLED(5),
  /** The profiler is not initialized. */
  PROFILER_NOT_INITIALIZED(6),
  /** The profiler runs already. */
  PROFILER_ALREADY_STARTED(7),
  /** The profiler does not run. */
  PROFILER_ALREADY_STOPPED(8),
  /** The driver library is the linker stub, not the driver. */
  STUB_LIBRARY(34),
  /** The call needs a newer driver. */
  CALL_REQUIRES_NEWER_DRIVER(36),
  /** The device is in use or out of reach. */
  DEVICE_UNAVAILABLE(46),
  /** No multicast resource is left. */
  MULTICAST_RESOURCE_FULL(47),
  /** There is no device. */
  NO_DEVICE(100),
  /** There is no such device. */
  INVALID_DEVICE(101),
  /** The device has no licence for compute work. */
  DEVICE_NOT_LICENSED(102),
  /** The kernel image is not valid. */
  INVALID_IMAGE(200),
  /** There is no such context, or none is current. */
  INVALID_CONTEXT(201),
  /** The context is current already. */
  CONTEXT_ALREADY_CURRENT(202),
  /** Mapping failed. */
  MAP_FAILED(205),
  /** Unmapping failed. */
  UNMAP_FAILED(206),
  /** The array is mapped. */
  ARRAY_IS_MAPPED(207),
  /** It is mapped already. */
  ALREADY_MAPPED(208),
  /** There is no kernel image for this GPU. */
  NO_BINARY_FOR_GPU(209),
  /** It is held already. */
  ALREADY_ACQUIRED(210),
  /** It is not mapped. */
  NOT_MAPPED(211),
  /** It is not mapped as an array. */
  NOT_MAPPED_AS_ARRAY(212),
  /** It is not mapped as a pointer. */
  NOT_MAPPED_AS_POINTER(213),
  /** The device met a memory error that ECC can not correct. */
  ECC_UNCORRECTABLE(214),
  /** The device has no such limit. */
  UNSUPPORTED_LIMIT(215),
  /** The context is in use. */
  CONTEXT_ALREADY_IN_USE(216),
  /** The devices can not reach each other. */
  PEER_ACCESS_UNSUPPORTED(217),
  /** The PTX does not compile. */
  INVALID_PTX(218),
  /** The graphics context is not valid. */
  INVALID_GRAPHICS_CONTEXT(219),
  /** NVLink met an error that it can not correct. */
  NVLINK_UNCORRECTABLE(220),
  /** The PTX compiler is not installed. */
  JIT_COMPILER_NOT_FOUND(221),
  /** The PTX is newer than the driver. */
  UNSUPPORTED_PTX_VERSION(222),
  /** Compiling PTX is disabled. */
  JIT_COMPILATION_DISABLED(223),
  /** The device has no such execution affinity. */
  UNSUPPORTED_EXEC_AFFINITY(224),
  /** The code synchronizes on the device in a way that is gone. */
  UNSUPPORTED_DEVSIDE_SYNC(225),
  /** The device met an error that was contained. */
  CONTAINED(226),
  /** The loader is too old. */
  INSUFFICIENT_LOADER_VERSION(227),
  /** The kernel source is not valid. */
  INVALID_SOURCE(300),
  /** There is no such file. */
  FILE_NOT_FOUND(301),
  /** A shared library lacks a symbol. */
  SHARED_OBJECT_SYMBOL_NOT_FOUND(302),
  /** A shared library can not be loaded. */
  SHARED_OBJECT_INIT_FAILED(303),
  /** An operating system call failed. */
  OPERATING_SYSTEM(304),
  /** The handle names nothing that is alive. */
  INVALID_HANDLE(400),
  /** It is not in a state for this. */
  ILLEGAL_STATE(401),
  /** The answer would lose information. */
  LOSSY_QUERY(402),
  /** There is no such thing. */
  NOT_FOUND(500),
  /** It has not finished yet. */
  NOT_READY(600),
  /** A kernel touched memory that it may not. */
  ILLEGAL_ADDRESS(700),
  /** The launch needs more than the device has. */
  LAUNCH_OUT_OF_RESOURCES(701),
  /** A kernel ran too long. */
  LAUNCH_TIMEOUT(702),
  /** The launch uses another texturing mode. */
  LAUNCH_INCOMPATIBLE_TEXTURING(703),
  /** Peer access is enabled already. */
  PEER_ACCESS_ALREADY_ENABLED(704),
  /** Peer access is not enabled. */
  PEER_ACCESS_NOT_ENABLED(705),
  /** The primary context is active already. */
  PRIMARY_CONTEXT_ACTIVE(708),
  /** The context was destroyed. */
  CONTEXT_IS_DESTROYED(709),
  /** An assertion in a kernel failed. */
  ASSERT(710),
  /** There are too many peers. */
  TOO_MANY_PEERS(711),
  /** The memory is registered already. */
  HOST_MEMORY_ALREADY_REGISTERED(712),
  /** The memory is not registered. */
  HOST_MEMORY_NOT_REGISTERED(713),
  /** A kernel overran its stack. */
  HARDWARE_STACK_ERROR(714),
  /** A kernel met an illegal instruction. */
  ILLEGAL_INSTRUCTION(715),
  /** A kernel used an address that is not aligned. */
  MISALIGNED_ADDRESS(716),
  /** A kernel used an address of the wrong space. */
  INVALID_ADDRESS_SPACE(717),
  /** A kernel jumped out of its code. */
  INVALID_PC(718),
  /** A kernel failed. */
  LAUNCH_FAILED(719),
  /** The cooperative launch has more blocks than fit at once. */
  COOPERATIVE_LAUNCH_TOO_LARGE(720),
  /** A kernel left tensor memory allocated. */
  TENSOR_MEMORY_LEAK(721),
  /** It is not permitted. */
  NOT_PERMITTED(800),
  /** The driver or the device lacks this. */
  NOT_SUPPORTED(801),
  /** The system is not ready for CUDA. */
  SYSTEM_NOT_READY(802),
  /** Driver library and kernel driver do not match. */
  SYSTEM_DRIVER_MISMATCH(803),
  /** The device has no forward compatibility. */
  COMPAT_NOT_SUPPORTED_ON_DEVICE(804),
  /** MPS can not be reached. */
  MPS_CONNECTION_FAILED(805),
  /** A call to MPS failed. */
  MPS_RPC_FAILURE(806),
  /** MPS is not ready. */
  MPS_SERVER_NOT_READY(807),
  /** MPS has no room for another client. */
  MPS_MAX_CLIENTS_REACHED(808),
  /** MPS has no room for another connection. */
  MPS_MAX_CONNECTIONS_REACHED(809),
  /** MPS ended this client. */
  MPS_CLIENT_TERMINATED(810),
  /** The device has no dynamic parallelism. */
  CDP_NOT_SUPPORTED(811),
  /** The dynamic parallelism is of another version. */
  CDP_VERSION_MISMATCH(812),
  /** It is not possible while a stream captures a graph. */
  STREAM_CAPTURE_UNSUPPORTED(900),
  /** The capture was invalidated. */
  STREAM_CAPTURE_INVALIDATED(901),
  /** Two captures would merge. */
  STREAM_CAPTURE_MERGE(902),
  /** The capture was not begun in this stream. */
  STREAM_CAPTURE_UNMATCHED(903),
  /** A forked stream was not joined. */
  STREAM_CAPTURE_UNJOINED(904),
  /** A dependency crosses the capture. */
  STREAM_CAPTURE_ISOLATION(905),
  /** The default stream can not be captured. */
  STREAM_CAPTURE_IMPLICIT(906),
  /** The event was recorded in a capture. */
  CAPTURED_EVENT(907),
  /** The capture belongs to another thread. */
  STREAM_CAPTURE_WRONG_THREAD(908),
  /** It took too long. */
  TIMEOUT(909),
  /** The executable graph can not be updated so. */
  GRAPH_EXEC_UPDATE_FAILURE(910),
  /** An external device failed. */
  EXTERNAL_DEVICE(911),
  /** The partition does not allow clusters of this size. */
  INVALID_CLUSTER_SIZE(912),
  /** The function is not loaded. */
  FUNCTION_NOT_LOADED(913),
  /** The resource is not of a type for this. */
  INVALID_RESOURCE_TYPE(914),
  /** The resources can not be split or combined so. */
  INVALID_RESOURCE_CONFIGURATION(915),
  /** Keys are being rotated. */
  KEY_ROTATION(916),
  /** The context of the stream was destroyed. */
  STREAM_DETACHED(917),
  /** The graph can not be captured again so. */
  GRAPH_RECAPTURE_FAILURE(918),
  /** The fabric is not ready. */
  FABRIC_NOT_READY(919),
  /** An unknown error. */
  UNKNOWN(999);

  private final int code;

  Result(int code) {
    this.code = code;
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
   * The result of a number.
   *
   * @param code a CUresult's number
   * @return the result; {@link #UNKNOWN} of a number that this version has no name for
   */
  public static Result of(int code) {
    for (Result result : values()) {
      if (result.code == code) {
        return result;
      }
    }
    return UNKNOWN;
  }
}
