// What is wrong is an error of JavaScript's, never a crash. GCX_LIBRARY names the library.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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
    assert.throws(() => device.split([]), /^GcxError: GCX_ERROR_INVALID_VALUE: .*no requests/);
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
    const taken = refused("GCX_ERROR_ALREADY_ACQUIRED");
    const never = refused("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION");
    assert.throws(() => gcx.Lease.resize([decode, 72], [prefill, 68]), never);
    assert.throws(() => gcx.Lease.resize([decode, 72]), taken);
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

  test("lease_name_not_a_string_is_refused", () => {
    for (const wrong of [5, 0, 5n, true, {}, [], Buffer.from("name"), Symbol("name"), () => "n"]) {
      assert.throws(() => new gcx.Lease(0, 8, wrong), TypeError, String(typeof wrong));
    }
    for (const wrong of ["a\0b", "\0", "a\0"]) {
      assert.throws(() => new gcx.Lease(0, 8, wrong), RangeError);
    }
    for (const none of [null, undefined]) new gcx.Lease(0, 8, none).close();
    new gcx.Lease(0, gcx.REST, "decode").close();
  });

  test("device_not_a_whole_number_is_refused", () => {
    const calls = [
      (device) => gcx.deviceInfo(device),
      (device) => gcx.Resource.ofDevice(device),
      (device) => new gcx.Lease(device, 8),
    ];
    for (const call of calls) {
      for (const wrong of [2 ** 32, -(2 ** 32), 2 ** 31, NaN, Infinity, 1.5, -0.5]) {
        assert.throws(() => call(wrong), RangeError, String(wrong));
      }
      for (const wrong of ["0", 0n, null, undefined, {}, [], true, Symbol("0")]) {
        assert.throws(() => call(wrong), TypeError, typeof wrong);
      }
      for (const wrong of [2, -1, 2 ** 31 - 1]) {
        assert.throws(() => call(wrong), refused("GCX_ERROR_INVALID_DEVICE"));
      }
    }
    assert.equal(gcx.deviceInfo(1).sm_count, 132);
  });

  test("argument_of_another_type_is_refused", () => {
    const device = gcx.Resource.ofDevice(0);
    for (const wrong of [null, undefined, 24, "24", { length: 1, map: () => [{}] }]) {
      assert.throws(() => device.split(wrong), TypeError);
    }
    assert.throws(() => device.split(new Array(3)), RangeError); // three holes
    assert.throws(() => device.split([8, Symbol("8")]), RangeError);
    // C would read 128 bytes of these 8.
    const short = { bytes: Buffer.alloc(8) };
    assert.throws(() => gcx.Resource.prototype.split.call(short, [8]), TypeError);
    class Short extends gcx.Resource {
      get bytes() {
        return Buffer.alloc(8);
      }
    }
    new gcx.Context(new Short(Buffer.from(device.bytes))).close();
    if (typeof ArrayBuffer.prototype.resize === "function") {
      const memory = new ArrayBuffer(128, { maxByteLength: 128 });
      const shrunk = new gcx.Resource(Buffer.from(memory));
      memory.resize(8);
      assert.throws(() => shrunk.split([8]), TypeError);
      assert.throws(() => new gcx.Context(shrunk), TypeError);
    }
    for (const wrong of ["stream", 1234, {}, [1n], Buffer.alloc(8), null, undefined]) {
      assert.throws(() => new gcx.Stream(wrong), TypeError);
    }
    assert.throws(() => new gcx.Stream(1234n).native, closed);
    assert.throws(() => new gcx.Stream(0n).probe(), closed);
    for (const wrong of [[[null, 8]], [[{}, 8]], [8], [null]]) {
      assert.throws(() => gcx.Lease.resize(...wrong), TypeError);
    }
    for (const wrong of [5, null, {}, Buffer.from("libgcx.so")]) {
      assert.throws(() => gcx.open(wrong), TypeError);
    }
    assert.throws(() => gcx.open(`${process.env.GCX_LIBRARY}\0.so`), RangeError);
  });

  test("module_imported_again_works", async () => {
    const folder = mkdtempSync(join(tmpdir(), "gcx-node-"));
    try {
      // The same file once more, and a copy through two paths, all with one koffi.
      symlinkSync(join(dirname(HERE), "node_modules"), join(folder, "node_modules"));
      copyFileSync(new URL("gcx.js", import.meta.url), join(folder, "gcx.mjs"));
      symlinkSync("gcx.mjs", join(folder, "link.mjs"));
      for (const path of ["./gcx.js?again", `${folder}/gcx.mjs`, `${folder}/link.mjs?again`]) {
        const again = await import(path);
        assert.notEqual(again.Lease, gcx.Lease);
        assert.throws(() => new again.Lease(0, 8), /call open\(\) first/);
        again.open(process.env.GCX_LIBRARY);
        const lease = new again.Lease(0, 24, "again");
        assert.equal(lease.stream().probe().length, 24);
        assert.throws(() => gcx.Lease.resize([lease, 8]), TypeError); // of another copy
        lease.close();
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
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
      const type = gcx.types[struct.name];
      assert.equal(koffi.sizeof(type), struct.size, struct.name);
      assert.deepEqual(
        Object.keys(koffi.type(type).members),
        struct.fields.map(({ name }) => name),
      );
      for (const { name, offset } of struct.fields) {
        assert.equal(koffi.offsetof(type, name), offset, `${struct.name}.${name}`);
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
