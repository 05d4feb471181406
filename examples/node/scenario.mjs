// Splits device 0 into 108 and 24 SMs and shows on which ones each part's kernels run. libgcx.so is
// opened by dlopen; nothing is compiled.
//
//     (cd ../../bindings/node && npm ci --ignore-scripts) && node scenario.mjs [LIBRARY]
import * as gcx from "../../bindings/node/generated/gcx.js";

const { c, check } = gcx;

function scenario() {
  const device = {};
  check(c.gcx_device_get_resource(0, gcx.GCX_RESOURCE_SM, device));
  const split = (...counts) => {
    const groups = counts.map(() => ({}));
    const requests = counts.map((sm_count) => ({ sm_count }));
    check(
      c.gcx_sm_split(
        device,
        requests,
        counts.length,
        gcx.GCX_SPLIT_DEFAULT,
        groups,
        null,
        null,
        null,
      ),
    );
    return groups;
  };
  const made = []; // what to give back, and how
  try {
    const owner = new Map();
    split(108, 24).forEach((group, i) => {
      const [context, stream] = [[null], [null]]; // a handle is written into an array of one
      check(c.gcx_context_create(group, 1, null, context));
      made.push(() => check(c.gcx_context_destroy(context[0])));
      check(c.gcx_stream_create(context[0], null, stream)); // gcx_stream_native: its cudaStream_t
      made.push(() => check(c.gcx_stream_destroy(stream[0])));

      const [ids, count] = [new Uint32Array(gcx.GCX_MAX_SMS), [0]];
      check(c.gcx_stream_probe_sms(stream[0], ids, ids.length, count)); // a kernel notes where it runs
      const sms = [...ids.subarray(0, count[0])];
      console.log(`partition ${i} runs on ${sms.length} SMs: ${sms.join(" ")}`);
      for (const sm of sms) {
        if (owner.has(sm)) throw new Error(`SM ${sm} is in partitions ${owner.get(sm)} and ${i}`);
        owner.set(sm, i);
      }
    });
    console.log("no SM is in both");

    try {
      split(140);
      throw new Error("140 SMs were given");
    } catch (error) {
      if (!(error instanceof gcx.GcxError)) throw error;
      console.log(`140 SMs: ${error.message}`);
    }
  } finally {
    made.reverse().forEach((destroy) => destroy());
  }
}

try {
  gcx.open(process.argv[2]);
  const info = gcx.sized(gcx.gcx_device_info);
  check(c.gcx_device_get_info(0, info));
  console.log(`${info.name}, ${info.sm_count} SMs`);
  scenario();
  const stats = gcx.sized(gcx.gcx_cache_stats);
  check(c.gcx_cache_get_stats(stats));
  console.log(`given back: ${stats.in_use} contexts in use`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
