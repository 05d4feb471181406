// Measures what calls through koffi cost. tests/ffi/overhead.py runs it beside others and says what
// follows; alone it prints nanoseconds.
//
//     GCX_DRIVER=sim:h100@13.0 node overhead.js LIBRARY
import koffi from "koffi";
import * as gcx from "./gcx.js";

/** What one call takes in the fastest of many turns, which nothing else disturbed. */
function nanoseconds(calls, call) {
  let best = Infinity;
  for (let turn = 0; turn < 50; turn++) {
    const begin = process.hrtime.bigint();
    for (let i = 0; i < calls; i++) call();
    best = Math.min(best, Number(process.hrtime.bigint() - begin) / calls);
  }
  return best.toFixed(2);
}

/** Splits, makes contexts and streams of SMs that had some before, and gives all back. */
function round(device) {
  const contexts = device.split([108, 24]).map((group) => new gcx.Context(group));
  const streams = contexts.map((context) => context.stream());
  streams.forEach((stream) => stream.close());
  contexts.forEach((context) => context.close());
}

/**
 * Makes the calls of a round, with the same types, to a function that does nothing: what koffi costs
 * by itself. C doesn't mind arguments that a function doesn't read.
 */
function bridged(libc, device) {
  const { gcx_context, gcx_stream, gcx_sm_request } = gcx.types;
  const bind = (...parameters) => libc.func("abs", "int", parameters);
  const out = (type) => koffi.out(koffi.pointer(type));
  const split = bind(
    "const uint8_t*",
    koffi.pointer(gcx_sm_request),
    "uint32_t",
    "uint32_t",
    out("uint8_t"),
    out("uint8_t"),
  );
  const create = bind("const uint8_t*", "uint32_t", "const void*", out(gcx_context));
  const stream = bind(gcx_context, "const void*", out(gcx_stream));
  const destroy = bind(gcx_context);
  return () => {
    const groups = Buffer.alloc(256);
    split(device.bytes, [{ sm_count: 108 }, { sm_count: 24 }], 2, 0, groups, null);
    for (let i = 0; i < 2; i++) {
      const handle = [null];
      create(groups.subarray(i * 128, (i + 1) * 128), 1, null, handle);
      const second = [null];
      stream(handle[0], null, second);
      destroy(second[0]);
      destroy(handle[0]);
    }
  };
}

const library = process.argv[2];
gcx.open(library);
const libc = koffi.load("libc.so.6");
const abs = libc.func("int abs(int)");
const version = koffi.load(library).func("uint32_t gcx_version(void)");
const device = gcx.Resource.ofDevice(0);
console.log(`abs ${nanoseconds(20000, () => abs(-3))}`);
console.log(`version ${nanoseconds(20000, () => version())}`);
console.log(`bridge ${nanoseconds(500, bridged(libc, device))}`);
console.log(`round ${nanoseconds(500, () => round(device))}`);
