// Splits device 0 into 108 and 24 SMs and shows on which ones each part's kernels run. libgcx.so is
// opened by dlopen; nothing is compiled.
//
//     npm ci --ignore-scripts && node scenario.js [LIBRARY]
import * as gcx from "./gcx.js";

// [scenario]
function scenario() {
  const device = gcx.Resource.ofDevice(0);
  const opened = [];
  try {
    const owner = new Map();
    device.split([108, 24]).forEach((group, i) => {
      const context = new gcx.Context(group);
      opened.push(context);
      const stream = context.stream(); // stream.native is the cudaStream_t
      opened.push(stream);

      const sms = stream.probe(); // a kernel notes where it runs
      console.log(`partition ${i} runs on ${sms.length} SMs: ${sms.join(" ")}`);
      for (const sm of sms) {
        if (owner.has(sm)) throw new Error(`SM ${sm} is in partitions ${owner.get(sm)} and ${i}`);
        owner.set(sm, i);
      }
    });
    console.log("no SM is in both");

    try {
      device.split([140]);
      throw new Error("140 SMs were given");
    } catch (error) {
      if (!(error instanceof gcx.GcxError)) throw error;
      console.log(`140 SMs: ${error.message}`);
    }
  } finally {
    opened.reverse().forEach((object) => object.close());
  }
}
// [/scenario]

try {
  gcx.open(process.argv[2]);
  const info = gcx.deviceInfo(0);
  console.log(`${info.name}, ${info.sm_count} SMs`);
  scenario();
  console.log(`given back: ${gcx.cacheStats().in_use} contexts in use`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
