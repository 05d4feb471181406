// Types and errors through koffi. GCX_LIBRARY names the library.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import koffi from "koffi";
import * as gcx from "../generated/gcx.js";

const HERE = fileURLToPath(import.meta.url);
const { c, check } = gcx;
const refused = (code) => (error) => {
  assert.ok(error instanceof gcx.GcxError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, /^GCX_ERROR_\w+: gcx_\w+: ./);
  return true;
};

function split(...counts) {
  const device = {};
  check(c.gcx_device_get_resource(0, gcx.GCX_RESOURCE_SM, device));
  const groups = counts.map(() => ({}));
  const requests = counts.map((sm_count) => ({ sm_count }));
  check(c.gcx_sm_split(device, requests, counts.length, 0, groups, null, null, null));
  return groups;
}

function acquire(count, name) {
  const lease = [null];
  check(c.gcx_lease_acquire(0, count, gcx.sized(gcx.gcx_lease_params, { name }), lease));
  return lease[0];
}

function tests() {
  test("calls_before_open_throw", () => {
    assert.throws(() => c.gcx_version(), /call open\(\) first/);
    assert.throws(() => gcx.open("/nowhere/libgcx.so"), /\/nowhere\/libgcx.so can't be used/);
  });

  test("library_without_a_function_is_not_used", () => {
    const folder = mkdtempSync(join(tmpdir(), "gcx-test-"));
    try {
      const older = join(folder, "libgcx.so");
      const present = readFileSync(process.env.GCX_LIBRARY, "latin1");
      writeFileSync(older, present.replaceAll("\0gcx_verify\0", "\0gcx_absent\0"), "latin1");
      assert.throws(() => gcx.open(older), /libgcx.so can't be used: .*gcx_verify/);
      assert.throws(() => c.gcx_version(), /call open\(\) first/);
    } finally {
      rmSync(folder, { recursive: true });
    }
    process.env.GCX_DRIVER = "sim:2xh100@13.0";
    gcx.open(process.env.GCX_LIBRARY);
  });

  test("structs_and_values_match_c", () => {
    const path = new URL("../../../docs/generated/gcx-api.json", import.meta.url);
    const api = JSON.parse(readFileSync(path, "utf8"));
    for (const struct of api.structs) {
      const type = gcx[struct.name];
      assert.equal(koffi.sizeof(type), struct.size, struct.name);
      const members = koffi.type(type).members;
      const names = struct.fields.map(({ name }) => name);
      assert.deepEqual(Object.keys(members), names);
      for (const { name, offset, size } of struct.fields) {
        assert.equal(koffi.offsetof(type, name), offset, `${struct.name}.${name}`);
        assert.equal(koffi.sizeof(members[name].type), size, `${struct.name}.${name}`);
      }
    }
    const values = api.enums.flatMap((of) => of.values).concat(api.constants);
    for (const { name, value } of values) assert.equal(gcx[name], value, name);
    assert.deepEqual(
      Object.keys(gcx.FUNCTIONS),
      api.functions.map(({ name }) => name),
    );
  });

  test("values_keep_their_types", () => {
    const lease = acquire(24, "decode");
    assert.equal(typeof lease, "bigint");
    const count = [0];
    const live = [{}, {}];
    check(c.gcx_lease_list(0, live, live.length, count));
    assert.deepEqual([count[0], live[0].name, live[0].sm_count], [1, "decode", 24]);
    const [ids, room] = [new Uint32Array(gcx.GCX_MAX_SMS), [0]];
    const stream = [null];
    check(c.gcx_lease_stream_create(lease, null, stream));
    check(c.gcx_stream_probe_sms(stream[0], ids, ids.length, room));
    assert.equal(room[0], 24);
    assert.equal(typeof c.gcx_stream_native(stream[0]), "bigint");
    const calls = [];
    const progress = (done, of) => calls.push([done, of]);
    const params = gcx.sized(gcx.gcx_prepare_params, { progress });
    check(c.gcx_cache_prepare(split(8, 16), 2, params));
    assert.deepEqual(calls, [
      [1, 2],
      [2, 2],
    ]);
    check(c.gcx_stream_destroy(stream[0]));
    check(c.gcx_lease_release(lease));
    assert.throws(() => check(c.gcx_lease_release(lease)), refused("GCX_ERROR_INVALID_HANDLE"));
    assert.equal(c.gcx_stream_native(stream[0]), null);
    assert.throws(() => split(0), refused("GCX_ERROR_INVALID_VALUE"));
  });

  test("value_that_c_would_change_is_refused", async () => {
    const acquire = (device, count, params = null) =>
      c.gcx_lease_acquire(device, count, params, [null]);
    const named = (name) => () => acquire(0, 8, gcx.sized(gcx.gcx_lease_params, { name }));
    const wrong = [
      [named(5), /^gcx_lease_acquire: params\.name is 5; it must be a string/],
      [named("a\0b"), /^gcx_lease_acquire: params\.name is 'a\\x00b'; /],
      [() => acquire(2 ** 32, 8), /^gcx_lease_acquire: device is 4294967296; /],
      [() => acquire(NaN, 8), /^gcx_lease_acquire: device is NaN; it must be an integer/],
      [() => acquire(0, -1), /: sm_count is -1; it must be an integer from 0 to 4294967295$/],
      [() => acquire(0, 2n ** 32n), /: sm_count is 4294967296n; /],
      [() => acquire(0, 8.5), /: sm_count is 8\.5; /],
      [() => acquire(0), /: sm_count is undefined; /],
      [() => acquire(0, 8, 5), /: params is 5; it must be an object, an array or null$/],
      [() => c.gcx_lease_acquire(0, 8, null, 5), /: lease is 5; /],
      [() => c.gcx_reservation_join("a\0b", [null]), /^gcx_reservation_join: token is /],
      [() => c.gcx_graph_set_part(null, [0, NaN], 2, 0), /: nodes\[1\] is NaN; /],
      [() => split(8, -1), /^gcx_sm_split: requests\[1\]\.sm_count is -1; /],
      [() => c.gcx_driver_open.async(5, () => {}), /^gcx_driver_open: driver is 5; /],
      [() => c.gcx_cache_prepare([], 0, { progress: 5 }), /: params\.progress is 5; /],
    ];
    for (const [call, message] of wrong) assert.throws(call, { name: "TypeError", message });
    const zero = /sm_count is 0; GCX_REST requests all SMs that are free$/;
    assert.throws(() => check(acquire(0, 0)), zero);
    assert.throws(() => check(c.gcx_reservation_join(null, [null])), /token is NULL/);
  });

  test("value_that_is_too_short_or_has_other_fields_is_refused", () => {
    const [device, requests] = [{}, [{ sm_count: 8 }, { sm_count: 8 }]];
    check(c.gcx_device_get_resource(0, gcx.GCX_RESOURCE_SM, device));
    const divide = (of, count, into) =>
      c.gcx_sm_split(device, of, count, 0, into, null, null, null);
    const probe = (ids) => c.gcx_stream_probe_sms(null, ids, gcx.GCX_MAX_SMS, [0]);
    const sized = (fields) => gcx.sized(gcx.gcx_lease_params, fields);
    const acquire = (fields, into) => c.gcx_lease_acquire(0, 8, sized(fields), into);
    const wrong = [
      [() => divide(requests, 2, [{}]), /^gcx_sm_split: groups has 1 elements; C uses 2$/],
      [() => divide(requests, 2, {}), /: groups has 1 elements; C uses 2$/],
      [() => divide(requests, 3, null), /: requests has 2 elements; C uses 3$/],
      [() => c.gcx_cache_prepare([{}], 2, null), /: resources has 1 elements; C uses 2$/],
      [() => probe(new Uint32Array(4)), /: sm_ids has 16 bytes; C uses \d+$/],
      [() => c.gcx_reservation_get_token(null, Buffer.alloc(8), 9), /: token has 8 bytes; /],
      [() => c.gcx_device_get_count(new Uint8Array(3)), /: count has 3 bytes; C uses 4$/],
      [() => acquire({}, []), /^gcx_lease_acquire: lease has 0 elements; C uses 1$/],
      [
        () => acquire({ timeout: 5 }, [null]),
        /: params has a field timeout; its fields are struct_/,
      ],
      [() => divide([{ sm_counts: 8 }], 1, [{}]), /: requests\[0\] has a field sm_counts; /],
      [
        () => acquire({ cancel: NaN }, [null]),
        /: params\.cancel is NaN; it must be an integer from/,
      ],
      [
        () => c.gcx_lease_release(2n ** 64n),
        /^gcx_lease_release: lease is 18446744073709551616n; /,
      ],
      [() => c.gcx_log_set_callback(4, () => {}, null), /: callback is a function, which /],
    ];
    for (const [call, message] of wrong) assert.throws(call, { name: "TypeError", message });
    const groups = [{ mine: 1 }, {}, {}]; // longer than needed, and what C only writes
    check(divide(requests, 2, groups));
    assert.equal(c.gcx_resource_get_overlap(groups[0], groups[1], [0]), gcx.GCX_SUCCESS);
  });

  test("module_imported_again_works", async () => {
    const again = await import("../generated/gcx.js?again");
    again.open(process.env.GCX_LIBRARY);
    again.check(again.c.gcx_device_get_info(0, again.sized(again.gcx_device_info)));
  });

  test("each_thread_gets_its_own_message", async () => {
    const asked = [1001, 1002, 1003, 1004];
    const said = asked.map(
      (sms) =>
        new Promise((resolve, reject) => {
          const worker = new Worker(HERE, { workerData: { sms } });
          worker.on("message", resolve);
          worker.on("error", reject);
        }),
    );
    assert.deepEqual(await Promise.all(said), [200, 200, 200, 200]);
  });

  test("process_ends_with_live_objects", () => {
    const program =
      `import * as gcx from "${new URL("../generated/gcx.js", import.meta.url)}";` +
      "const c = gcx.open(process.env.GCX_LIBRARY);" +
      "gcx.check(c.gcx_lease_acquire(0, 8, null, [null]));";
    const done = spawnSync(process.execPath, ["--input-type=module", "-e", program]);
    assert.deepEqual([done.status, String(done.stderr)], [0, ""]);
  });
}

// In a worker: counts how many of 200 messages name the SM count that this thread requested.
function refusals() {
  gcx.open(process.env.GCX_LIBRARY);
  let right = 0;
  for (let i = 0; i < 200; i++) {
    try {
      split(workerData.sms);
    } catch (error) {
      if (error.message.includes(`requested ${workerData.sms} SMs`)) right++;
    }
  }
  parentPort.postMessage(right);
}

if (isMainThread) tests();
else refusals();
