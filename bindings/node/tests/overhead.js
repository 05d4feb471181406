// Measures what calls through koffi cost, and prints nanoseconds. tests/ffi/overhead.py compares them.
//
//     GCX_DRIVER=sim:h100@13.0 node bindings/node/tests/overhead.js LIBRARY
import koffi from "koffi";
import * as gcx from "../generated/gcx.js";

const RESOURCE = koffi.sizeof(gcx.gcx_resource);

/** Returns what one call takes in the fastest of many turns. */
function nanoseconds(calls, call) {
  let best = Infinity;
  for (let turn = 0; turn < 50; turn++) {
    const begin = process.hrtime.bigint();
    for (let i = 0; i < calls; i++) call();
    best = Math.min(best, Number(process.hrtime.bigint() - begin) / calls);
  }
  return best.toFixed(2);
}

/**
 * Splits, creates cached contexts and streams of the groups, and destroys them: nine calls. Resources
 * are Buffers, which koffi doesn't convert.
 */
function round(c, device) {
  const groups = Buffer.alloc(2 * RESOURCE);
  gcx.check(
    c.gcx_sm_split(device, [{ sm_count: 108 }, { sm_count: 24 }], 2, 0, groups, null, null, null),
  );
  for (let i = 0; i < 2; i++) {
    const [context, made] = [[null], [null]];
    gcx.check(
      c.gcx_context_create(groups.subarray(i * RESOURCE, (i + 1) * RESOURCE), 1, null, context),
    );
    gcx.check(c.gcx_stream_create(context[0], null, made));
    gcx.check(c.gcx_stream_destroy(made[0]));
    gcx.check(c.gcx_context_destroy(context[0]));
  }
}

const library = process.argv[2];
const c = gcx.open(library);
const libc = koffi.load("libc.so.6");
const abs = libc.func("int abs(int)");
// The same calls to a function that does nothing: the cost of koffi itself. C ignores arguments that
// a function doesn't read.
const bridge = {};
for (const [name, [result, types]] of Object.entries(gcx.FUNCTIONS)) {
  const nothing = libc.func("abs", result, Object.values(types));
  bridge[name] = (...values) => nothing(...values) && 0;
}
const device = Buffer.alloc(RESOURCE);
gcx.check(c.gcx_device_get_resource(0, gcx.GCX_RESOURCE_SM, device));
console.log(`abs ${nanoseconds(20000, () => abs(-3))}`);
console.log(`version ${nanoseconds(20000, () => c.gcx_version())}`);
console.log(`bridge ${nanoseconds(500, () => round(bridge, device))}`);
console.log(`round ${nanoseconds(500, () => round(c, device))}`);
