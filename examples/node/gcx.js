// What this example needs of libgcx in JavaScript, opened by dlopen through koffi. Contexts and
// streams are given up once, by close(); what is closed throws from then on, a second close() too.
// Nothing is closed by the garbage collector.
import koffi from "koffi";

/** As a count: all SMs that are free, or what the other groups leave. A count of 0 is refused. */
export const REST = 0xffffffff;

const RESOURCE_SM = 1;
const MAX_SMS = 1024;
const RESOURCE_BYTES = 128; // a gcx_resource, which is a value: here a Buffer with a copy of it

koffi.struct("gcx_device_info", {
  struct_size: "uint32_t",
  compute_capability_major: "int32_t",
  compute_capability_minor: "int32_t",
  sm_count: "uint32_t",
  min_partition_size: "uint32_t",
  coscheduled_alignment: "uint32_t",
  locality_domain_count: "uint32_t",
  name: koffi.array("char", 128, "String"),
  uuid: koffi.array("uint8_t", 16),
});
koffi.struct("gcx_sm_request", {
  sm_count: "uint32_t",
  coscheduled_sm_count: "uint32_t",
  preferred_coscheduled_sm_count: "uint32_t",
  flags: "uint32_t",
  locality_domain_id: "uint32_t",
  reserved: koffi.array("uint32_t", 11),
});
koffi.struct("gcx_cache_stats", {
  struct_size: "uint32_t",
  limit: "uint32_t",
  in_use: "uint32_t",
  kept: "uint32_t",
  hits: "uint64_t",
  misses: "uint64_t",
  evicted: "uint64_t",
  lost: "uint64_t",
  prepared: "uint64_t",
  making_ns: "uint64_t",
  longest_making_ns: "uint64_t",
  kept_streams: "uint32_t",
  reserved: "uint32_t",
});
koffi.pointer("gcx_context", koffi.opaque());
koffi.pointer("gcx_stream", koffi.opaque());
koffi.pointer("gcx_lease", koffi.opaque());
koffi.struct("gcx_lease_params", {
  struct_size: "uint32_t",
  flags: "uint32_t",
  family: "int",
  min_sm_count: "uint32_t",
  exclusive_sm_count: "uint32_t",
  timeout_ms: "uint32_t",
  cancel: "void*",
  name: "const char*",
});
koffi.struct("gcx_lease_size", { lease: "gcx_lease", sm_count: "uint32_t", reserved: "uint32_t" });
koffi.struct("gcx_lease_info", {
  struct_size: "uint32_t",
  device: "int32_t",
  family: "int",
  flags: "uint32_t",
  sm_count: "uint32_t",
  exclusive_sm_count: "uint32_t",
  stream_count: "uint32_t",
  reserved: "uint32_t",
  id: "uint64_t",
  changes: "uint64_t",
  name: koffi.array("char", 64, "String"),
});

// The functions as gcx.h declares them, with koffi's words for what is written to.
const DECLARATIONS = [
  "const char* gcx_result_name(int result)",
  "const char* gcx_last_error_message(void)",
  "int gcx_device_get_info(int32_t device, _Inout_ gcx_device_info* info)",
  "int gcx_device_get_resource(int32_t device, int type, _Out_ uint8_t* resource)",
  "int gcx_sm_split(const uint8_t* input, const gcx_sm_request* requests, uint32_t request_count," +
    " uint32_t flags, _Out_ uint8_t* groups, _Out_ uint8_t* remainder)",
  "int gcx_context_create(const uint8_t* resources, uint32_t resource_count, const void* params," +
    " _Out_ gcx_context* context)",
  "int gcx_context_destroy(gcx_context context)",
  "int gcx_stream_create(gcx_context context, const void* params, _Out_ gcx_stream* stream)",
  "int gcx_stream_destroy(gcx_stream stream)",
  "void* gcx_stream_native(gcx_stream stream)",
  "int gcx_stream_query(gcx_stream stream)",
  "int gcx_stream_probe_sms(gcx_stream stream, _Out_ uint32_t* sm_ids, uint32_t capacity," +
    " _Out_ uint32_t* count)",
  "int gcx_cache_get_stats(_Inout_ gcx_cache_stats* stats)",
  "int gcx_lease_acquire(int32_t device, uint32_t sm_count, const gcx_lease_params* params," +
    " _Out_ gcx_lease* lease)",
  "int gcx_lease_release(gcx_lease lease)",
  "int gcx_lease_resize(const gcx_lease_size* sizes, uint32_t count, uint32_t flags)",
  "int gcx_lease_get_info(gcx_lease lease, _Inout_ gcx_lease_info* info)",
  "int gcx_lease_stream_create(gcx_lease lease, const void* params, _Out_ gcx_stream* stream)",
];

const c = {};

/** Loads libgcx from a path, or by a name that the loader looks up. Comes first, once. */
export function open(library = "libgcx.so.1") {
  try {
    const loaded = koffi.load(library);
    for (const declaration of DECLARATIONS) {
      c[declaration.match(/gcx_\w+(?=\()/)[0]] = loaded.func(declaration);
    }
  } catch (error) {
    throw new Error(`${library} can't be used: ${error.message}`, { cause: error });
  }
}

/** What gcx answered: .code is the result's name, .result its number, .message says what was wrong. */
export class GcxError extends Error {
  constructor(code) {
    super(`${c.gcx_result_name(code)}: ${c.gcx_last_error_message()}`);
    this.name = "GcxError";
    this.code = c.gcx_result_name(code);
    this.result = code;
  }
}

// The message is kept by thread: koffi calls in JavaScript's own, as long as nobody uses .async().
function check(result) {
  if (result !== 0) throw new GcxError(result);
}

/** koffi would make some uint32_t of anything. */
function count(value) {
  if (!Number.isInteger(value) || value < 0 || value > 0xffffffff) {
    throw new RangeError(`a number of SMs is a whole number from 1 on, not ${value}`);
  }
  return value;
}

export function deviceInfo(device) {
  const info = { struct_size: koffi.sizeof("gcx_device_info") };
  check(c.gcx_device_get_info(device, info));
  return info;
}

/** How many green contexts are in use, and what else gcx keeps. */
export function cacheStats() {
  const stats = { struct_size: koffi.sizeof("gcx_cache_stats") };
  check(c.gcx_cache_get_stats(stats));
  return stats;
}

/** SMs of a device: a value, with nothing to close. */
export class Resource {
  #bytes;

  constructor(bytes) {
    if (!Buffer.isBuffer(bytes) || bytes.length !== RESOURCE_BYTES) {
      throw new RangeError(`a resource is a Buffer of ${RESOURCE_BYTES} bytes`);
    }
    this.#bytes = bytes;
  }

  /** For C, which reads all of them. */
  get bytes() {
    return this.#bytes;
  }

  static ofDevice(device) {
    const bytes = Buffer.alloc(RESOURCE_BYTES);
    check(c.gcx_device_get_resource(device, RESOURCE_SM, bytes));
    return new Resource(bytes);
  }

  /** A disjoint group for each count; REST takes what the others leave. */
  split(counts) {
    const requests = counts.map((sms) => ({ sm_count: count(sms) }));
    const groups = Buffer.alloc(counts.length * RESOURCE_BYTES);
    check(c.gcx_sm_split(this.bytes, requests, counts.length, 0, groups, null));
    return counts.map((_, i) => {
      return new Resource(groups.subarray(i * RESOURCE_BYTES, (i + 1) * RESOURCE_BYTES));
    });
  }
}

export class Context {
  #handle;

  constructor(resource) {
    if (!(resource instanceof Resource)) throw new TypeError("a context is made of a Resource");
    const handle = [null];
    check(c.gcx_context_create(resource.bytes, 1, null, handle));
    this.#handle = handle[0];
  }

  stream() {
    const handle = [null];
    check(c.gcx_stream_create(this.#handle, null, handle));
    return new Stream(handle[0]);
  }

  /** Gives the context up; its streams keep it. */
  close() {
    check(c.gcx_context_destroy(this.#handle));
  }
}

export class Stream {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  /**
   * The cudaStream_t, for any CUDA code, as a BigInt. It stays gcx's. A lease's stream follows the
   * lease, so ask anew for each step.
   */
  get native() {
    const native = c.gcx_stream_native(this.#handle);
    if (native !== null) return native;
    check(c.gcx_stream_query(this.#handle)); // says why
    throw new Error("the stream has no CUstream");
  }

  /** The SMs that a kernel in the stream runs on, as it notes them. */
  probe() {
    const ids = new Uint32Array(MAX_SMS);
    const seen = [0];
    check(c.gcx_stream_probe_sms(this.#handle, ids, MAX_SMS, seen));
    return Array.from(ids.subarray(0, seen[0]));
  }

  /** Gives the stream up; work in it finishes. */
  close() {
    check(c.gcx_stream_destroy(this.#handle));
  }
}

/** SMs of a device that no other lease of the process has. */
export class Lease {
  #handle;

  /**
   * Acquires SMs, or REST for all that are free. It doesn't wait for SMs that others hold: that would hold up
   * JavaScript's thread, in which they would be given back.
   */
  constructor(device, sms, name = null) {
    const params = { struct_size: koffi.sizeof("gcx_lease_params"), name };
    const handle = [null];
    check(c.gcx_lease_acquire(device, count(sms), params, handle));
    this.#handle = handle[0];
  }

  /** Gives leases other sizes, all in one operation or none: Lease.resize([lease, sms], ...). */
  static resize(...changes) {
    const sizes = changes.map(([of, sms]) => ({ lease: of.#handle, sm_count: count(sms) }));
    check(c.gcx_lease_resize(sizes, sizes.length, 0));
  }

  get smCount() {
    const info = { struct_size: koffi.sizeof("gcx_lease_info") };
    check(c.gcx_lease_get_info(this.#handle, info));
    return info.sm_count;
  }

  /** A stream that follows the lease. */
  stream() {
    const handle = [null];
    check(c.gcx_lease_stream_create(this.#handle, null, handle));
    return new Stream(handle[0]);
  }

  /** Gives the SMs up; work on them finishes, and the lease's streams end. */
  close() {
    check(c.gcx_lease_release(this.#handle));
  }
}
