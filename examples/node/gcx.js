// What this example needs of libgcx in JavaScript, opened by dlopen through koffi. Contexts and
// streams are given up once, by close(); what is closed throws from then on, a second close() too.
// Nothing is closed by the garbage collector.
import koffi from "koffi";

/** As a count: all SMs that are free, or what the other groups leave. A count of 0 is refused. */
export const REST = 0xffffffff;

const RESOURCE_SM = 1;
const MAX_SMS = 1024;
const RESOURCE_BYTES = 128; // a gcx_resource, which is a value: here a Buffer with a copy of it

// koffi keeps one table of type names for all modules of a thread, so types with names could be
// declared only once: by the first of several imports of this file, or copies of it.
const pointer = (type) => koffi.pointer(type);
const out = (type) => koffi.out(koffi.pointer(type));
const inout = (type) => koffi.inout(koffi.pointer(type));
const handle = () => koffi.pointer(koffi.opaque());

const gcx_context = handle();
const gcx_stream = handle();
const gcx_lease = handle();
const gcx_device_info = koffi.struct({
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
const gcx_sm_request = koffi.struct({
  sm_count: "uint32_t",
  coscheduled_sm_count: "uint32_t",
  preferred_coscheduled_sm_count: "uint32_t",
  flags: "uint32_t",
  locality_domain_id: "uint32_t",
  reserved: koffi.array("uint32_t", 11),
});
const gcx_cache_stats = koffi.struct({
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
const gcx_lease_params = koffi.struct({
  struct_size: "uint32_t",
  flags: "uint32_t",
  family: "int",
  min_sm_count: "uint32_t",
  exclusive_sm_count: "uint32_t",
  timeout_ms: "uint32_t",
  cancel: "void*",
  name: "const char*",
});
const gcx_lease_size = koffi.struct({
  lease: gcx_lease,
  sm_count: "uint32_t",
  reserved: "uint32_t",
});
const gcx_lease_info = koffi.struct({
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

/** The types of gcx.h under their names, for koffi. */
export const types = {
  gcx_context,
  gcx_stream,
  gcx_lease,
  gcx_device_info,
  gcx_sm_request,
  gcx_cache_stats,
  gcx_lease_params,
  gcx_lease_size,
  gcx_lease_info,
};

// The functions as gcx.h declares them: what each returns, and what it takes.
const resource = "const uint8_t*";
const FUNCTIONS = {
  gcx_result_name: ["const char*", "int"],
  gcx_last_error_message: ["const char*"],
  gcx_device_get_info: ["int", "int32_t", inout(gcx_device_info)],
  gcx_device_get_resource: ["int", "int32_t", "int", out("uint8_t")],
  gcx_sm_split: [
    "int",
    resource,
    pointer(gcx_sm_request),
    "uint32_t",
    "uint32_t",
    out("uint8_t"),
    out("uint8_t"),
  ],
  gcx_context_create: ["int", resource, "uint32_t", "const void*", out(gcx_context)],
  gcx_context_destroy: ["int", gcx_context],
  gcx_stream_create: ["int", gcx_context, "const void*", out(gcx_stream)],
  gcx_stream_destroy: ["int", gcx_stream],
  gcx_stream_native: ["void*", gcx_stream],
  gcx_stream_query: ["int", gcx_stream],
  gcx_stream_probe_sms: ["int", gcx_stream, out("uint32_t"), "uint32_t", out("uint32_t")],
  gcx_cache_get_stats: ["int", inout(gcx_cache_stats)],
  gcx_lease_acquire: ["int", "int32_t", "uint32_t", pointer(gcx_lease_params), out(gcx_lease)],
  gcx_lease_release: ["int", gcx_lease],
  gcx_lease_resize: ["int", pointer(gcx_lease_size), "uint32_t", "uint32_t"],
  gcx_lease_get_info: ["int", gcx_lease, inout(gcx_lease_info)],
  gcx_lease_stream_create: ["int", gcx_lease, "const void*", out(gcx_stream)],
};

const c = {};
for (const name of Object.keys(FUNCTIONS)) {
  c[name] = () => {
    throw new Error(`${name}: the library is not open; call open() first`);
  };
}

/** Loads libgcx from a path, or by a name that the loader looks up. Comes first, once. */
export function open(library = "libgcx.so.1") {
  text("open: the library", library);
  try {
    const loaded = koffi.load(library);
    for (const [name, [result, ...parameters]] of Object.entries(FUNCTIONS)) {
      c[name] = loaded.func(name, result, parameters);
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

// Every argument is checked before it crosses to C: koffi makes an int32_t or uint32_t of any
// number, some pointer of anything, and reads a string up to its first 0 byte.

function count(value) {
  if (!Number.isInteger(value) || value < 0 || value > 0xffffffff) {
    throw new RangeError(`a number of SMs is a whole number from 1 on, not ${String(value)}`);
  }
  return value;
}

function ordinal(value) {
  if (typeof value !== "number") {
    throw new TypeError(`a device is a number, not of type ${typeof value}`);
  }
  if (!Number.isInteger(value) || value < -(2 ** 31) || value >= 2 ** 31) {
    throw new RangeError(`a device is a whole number from 0 on, not ${value}`);
  }
  return value;
}

function text(what, value) {
  if (typeof value !== "string") {
    throw new TypeError(`${what} is a string, not of type ${typeof value}`);
  }
  if (value.includes("\0")) throw new RangeError(`${what} has a 0 byte in it`);
  return value;
}

export function deviceInfo(device) {
  const info = { struct_size: koffi.sizeof(gcx_device_info) };
  check(c.gcx_device_get_info(ordinal(device), info));
  return info;
}

/** How many green contexts are in use, and what else gcx keeps. */
export function cacheStats() {
  const stats = { struct_size: koffi.sizeof(gcx_cache_stats) };
  check(c.gcx_cache_get_stats(stats));
  return stats;
}

let bytesOf; // a Resource's bytes, whatever a subclass answers as .bytes

/** SMs of a device: a value, with nothing to close. */
export class Resource {
  #bytes;

  static {
    bytesOf = (resource) => {
      // A Buffer loses its bytes if another thread is given its memory.
      if (resource.#bytes.length !== RESOURCE_BYTES) {
        throw new TypeError("the resource's Buffer was detached or resized");
      }
      return resource.#bytes;
    };
  }

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
    check(c.gcx_device_get_resource(ordinal(device), RESOURCE_SM, bytes));
    return new Resource(bytes);
  }

  /** A disjoint group for each count; REST takes what the others leave. */
  split(counts) {
    if (!Array.isArray(counts)) throw new TypeError("counts is an array of numbers of SMs");
    const requests = Array.from(counts, (sms) => ({ sm_count: count(sms) }));
    const groups = Buffer.alloc(requests.length * RESOURCE_BYTES);
    check(c.gcx_sm_split(bytesOf(this), requests, requests.length, 0, groups, null));
    return requests.map((_, i) => {
      return new Resource(groups.subarray(i * RESOURCE_BYTES, (i + 1) * RESOURCE_BYTES));
    });
  }
}

export class Context {
  #handle;

  constructor(resource) {
    if (!(resource instanceof Resource)) throw new TypeError("a context is made of a Resource");
    const handle = [null];
    check(c.gcx_context_create(bytesOf(resource), 1, null, handle));
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
    if (typeof handle !== "bigint") {
      throw new TypeError("a stream is made by stream() of a Context or a Lease");
    }
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
    const params = { struct_size: koffi.sizeof(gcx_lease_params) };
    if (name !== null && name !== undefined) params.name = text("a lease's name", name);
    const handle = [null];
    check(c.gcx_lease_acquire(ordinal(device), count(sms), params, handle));
    this.#handle = handle[0];
  }

  /** Gives leases other sizes, all in one operation or none: Lease.resize([lease, sms], ...). */
  static resize(...changes) {
    const sizes = changes.map(([of, sms]) => ({ lease: of.#handle, sm_count: count(sms) }));
    check(c.gcx_lease_resize(sizes, sizes.length, 0));
  }

  get smCount() {
    const info = { struct_size: koffi.sizeof(gcx_lease_info) };
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
