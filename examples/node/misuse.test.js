// What is wrong is an error of JavaScript's, never a crash. GCX_LIBRARY names the library.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import koffi from "koffi";
import * as gcx from "./gcx.js";

process.env.GCX_DRIVER = "sim:2xh100@13.0";
gcx.open(process.env.GCX_LIBRARY);

const HERE = fileURLToPath(import.meta.url);
const refused = (code) => (error) => {
  assert.ok(error instanceof gcx.GcxError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, /^GCX_ERROR_\w+: gcx_\w+: ./);
  return true;
};
const closed = refused("GCX_ERROR_INVALID_HANDLE");

function opened(sms = 24) {
  const [group] = gcx.Resource.ofDevice(0).split([sms]);
  const context = new gcx.Context(group);
  return { context, stream: context.stream() };
}

function tests() {
  test("what is closed is refused, and closed once", () => {
    const { context, stream } = opened();
    stream.close();
    context.close();
    assert.throws(() => stream.close(), closed);
    assert.throws(() => context.close(), closed);
    assert.throws(() => stream.probe(), closed);
    assert.throws(() => stream.native, closed);
    assert.throws(() => context.stream(), closed);
  });

  test("a stream keeps its context", () => {
    const { context, stream } = opened();
    context.close();
    assert.equal(stream.probe().length, 24);
    assert.equal(typeof stream.native, "bigint");
    stream.close();
    assert.equal(gcx.cacheStats().in_use, 0);
  });

  test("wrong values", () => {
    const device = gcx.Resource.ofDevice(0);
    for (const wrong of [-1, 7.5, 2 ** 32, NaN, "24", 24n, null, undefined]) {
      assert.throws(() => device.split([wrong]), RangeError, String(wrong));
    }
    assert.throws(() => device.split([]), refused("GCX_ERROR_INVALID_VALUE"));
    assert.throws(() => gcx.Resource.ofDevice(2), refused("GCX_ERROR_INVALID_DEVICE"));
    const none = new gcx.Resource(Buffer.alloc(128));
    assert.throws(() => none.split([24]), refused("GCX_ERROR_INVALID_RESOURCE_TYPE"));
    const changed = new gcx.Resource(Buffer.from(device.bytes));
    changed.bytes[24] ^= 1;
    const configuration = refused("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION");
    assert.throws(() => changed.split([24]), configuration);
    assert.throws(() => device.split([0xfffffffe]), configuration);
    // Too short for what C reads.
    assert.throws(() => new gcx.Resource(Buffer.alloc(8)), RangeError);
    assert.throws(() => new gcx.Resource("bytes"), RangeError);
    assert.throws(() => new gcx.Context({ bytes: Buffer.alloc(8) }), TypeError);
    assert.throws(() => (device.bytes = Buffer.alloc(8)), TypeError);
  });

  test("a lease grows by what another gives, and its stream follows", () => {
    const decode = new gcx.Lease(0, 32, "decode");
    const prefill = new gcx.Lease(0, gcx.REST, "prefill");
    const stream = decode.stream();
    const before = stream.native;
    gcx.Lease.resize([decode, 64], [prefill, gcx.REST]);
    assert.deepEqual([decode.smCount, prefill.smCount], [64, 68]);
    assert.notEqual(stream.native, before);
    assert.equal(stream.probe().length, 64);
    const impossible = refused("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION");
    assert.throws(() => gcx.Lease.resize([decode, 72], [prefill, 68]), impossible);
    const taken = refused("GCX_ERROR_ALREADY_ACQUIRED");
    assert.throws(() => new gcx.Lease(0, 8), taken);
    assert.equal(decode.smCount, 64);
    for (const lease of [decode, prefill]) lease.close();
    const ended = refused("GCX_ERROR_CONTEXT_IS_DESTROYED");
    assert.throws(() => stream.probe(), ended);
    assert.throws(() => stream.native, ended);
    stream.close();
    assert.equal(gcx.cacheStats().in_use, 0);
  });

  test("leases that are misused", () => {
    const lease = new gcx.Lease(0, 24);
    const value = refused("GCX_ERROR_INVALID_VALUE");
    assert.throws(() => gcx.Lease.resize(), value);
    assert.throws(() => gcx.Lease.resize([lease, 8], [lease, 16]), value);
    assert.throws(() => new gcx.Lease(0, 8, "n".repeat(64)), value);
    assert.throws(() => new gcx.Lease(2, 8), refused("GCX_ERROR_INVALID_DEVICE"));
    for (const wrong of [-8, 7.5, 2 ** 32, "24", null]) {
      assert.throws(() => new gcx.Lease(0, wrong), RangeError);
      assert.throws(() => gcx.Lease.resize([lease, wrong]), RangeError);
    }
    assert.throws(() => gcx.Lease.resize([opened, 8]), TypeError);
    assert.equal(lease.smCount, 24);
    lease.close();
    assert.throws(() => lease.close(), closed);
    assert.throws(() => lease.smCount, closed);
    assert.throws(() => lease.stream(), closed);
    assert.throws(() => gcx.Lease.resize([lease, 8]), closed);
  });

  test("a count of 0 is refused", () => {
    const device = gcx.Resource.ofDevice(0);
    const zero = refused("GCX_ERROR_INVALID_VALUE");
    assert.throws(() => device.split([0]), zero);
    assert.throws(() => device.split([8, 0]), zero);
    assert.throws(() => new gcx.Lease(0, 0), zero);
    const lease = new gcx.Lease(0, 24);
    assert.throws(() => gcx.Lease.resize([lease, 0]), zero);
    assert.equal(lease.smCount, 24);
    lease.close();
    const [most, small] = device.split([gcx.REST, 24]);
    const context = new gcx.Context(most);
    const stream = context.stream();
    assert.equal(stream.probe().length, 108);
    for (const open of [stream, context]) open.close();
    assert.notDeepEqual(most.bytes, small.bytes);
  });

  test("each thread gets its own message", async () => {
    const asked = [1001, 1002, 1003, 1004];
    const said = asked.map(
      (sms) =>
        new Promise((resolve, reject) => {
          const worker = new Worker(HERE, { workerData: { sms } });
          worker.on("message", resolve);
          worker.on("error", reject);
        }),
    );
    (await Promise.all(said)).forEach((count, i) => assert.equal(count, 200, `${asked[i]}`));
  });

  test("a process ends with live objects", () => {
    const program =
      `import * as gcx from "${HERE.replace("misuse.test.js", "gcx.js")}";` +
      "gcx.open(process.env.GCX_LIBRARY);" +
      "globalThis.kept = new gcx.Context(gcx.Resource.ofDevice(0)).stream();" +
      "globalThis.leased = new gcx.Lease(0, 8).stream();";
    const done = spawnSync(process.execPath, ["--input-type=module", "-e", program]);
    assert.deepEqual([done.status, String(done.stderr)], [0, ""]);
  });

  test("structs are laid out as gcx-api.json has them", () => {
    const path = new URL("../../docs/gcx-api.json", import.meta.url);
    const api = JSON.parse(readFileSync(path, "utf8"));
    const mirrored =
      /^gcx_(device_info|sm_request|cache_stats|lease_params|lease_size|lease_info)$/;
    for (const struct of api.structs.filter(({ name }) => mirrored.test(name))) {
      assert.equal(koffi.sizeof(struct.name), struct.size, struct.name);
      assert.deepEqual(
        Object.keys(koffi.type(struct.name).members),
        struct.fields.map(({ name }) => name),
      );
      for (const { name, offset } of struct.fields) {
        assert.equal(koffi.offsetof(struct.name, name), offset, `${struct.name}.${name}`);
      }
    }
    const resource = api.structs.find(({ name }) => name === "gcx_resource");
    assert.equal(gcx.Resource.ofDevice(0).bytes.length, resource.size);
  });
}

// In a worker: how many of 200 refusals named the count that this thread asked for.
function refusals() {
  let right = 0;
  for (let i = 0; i < 200; i++) {
    try {
      gcx.Resource.ofDevice(0).split([workerData.sms]);
    } catch (error) {
      if (error.message.includes(`asked for ${workerData.sms} SMs`)) right++;
    }
  }
  parentPort.postMessage(right);
}

if (isMainThread) tests();
else refusals();
