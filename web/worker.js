// Runs the library. Messages in: { type: 'load', threads }, then any number of
// { type: 'match', left, right, scale } with images { width, height, data: RGBA }. Out: 'loading' { share },
// 'ready' { threads }, 'progress' { done, stage }, 'warning' { text }, 'result' { ... }, 'error' { kind, text }.
const CACHE = 'nmrf-@BUILD@';
const MODULE = 'nmrf-module.js';
const MODEL = 'nmrf-fast.safetensors';
let nmrf = null;

function tell(type, content = {}, moved = []) {
  postMessage({ type, ...content }, moved);
}

// The bytes of a response, reported as they come.
async function readAll(response) {
  const total = Number(response.headers.get('Content-Length')) || 0;
  const reader = response.body.getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (total > 0) tell('loading', { share: Math.min(1, size / total) });
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

// The model, from the browser's cache where it keeps one (pages over https and of this machine).
async function fetchModel() {
  const cache = self.caches ? await caches.open(CACHE).catch(() => null) : null;
  const kept = cache && (await cache.match(MODEL));
  if (kept) return new Uint8Array(await kept.arrayBuffer());
  const response = await fetch(MODEL);
  if (!response.ok) throw new Error(`${MODEL} could not be loaded (${response.status})`);
  const bytes = await readAll(response);
  if (cache) {
    await cache.put(MODEL, new Response(bytes.slice())).catch(() => {});
    for (const name of await caches.keys())
      if (name.startsWith('nmrf-') && name !== CACHE) caches.delete(name);
  }
  return bytes;
}

function failure(kind) {
  return { kind, text: nmrf.UTF8ToString(nmrf._nmrf_error()) };
}

function intoMemory(bytes) {
  const at = nmrf._malloc(bytes.length);
  if (at === 0) throw Object.assign(new Error('not enough memory'), { kind: 5 });
  nmrf.HEAPU8.set(bytes, at);
  return at;
}

async function load(threads) {
  // Pages that may not share memory do not know the name, but have the thing; one thread needs no more.
  self.SharedArrayBuffer ||=
    new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true }).buffer.constructor;
  importScripts(MODULE);
  const [module, model] = await Promise.all([
    createNmrf({
      threads,
      mainScriptUrlOrBlob: MODULE,
      on_progress: (done, stage) => tell('progress', { done, stage }),
      on_warning: (text) => tell('warning', { text }),
    }),
    fetchModel(),
  ]);
  nmrf = module;
  // A thread that starts waits for its worker, which cannot load while this one waits for the thread.
  while (!nmrf.PThread.unusedWorkers.every((worker) => worker.loaded))
    await new Promise((done) => setTimeout(done, 5));
  const at = intoMemory(model);
  const status = nmrf._nmrf_load(at, model.length, threads);
  nmrf._free(at);
  if (status !== 0) tell('error', failure(status));
  else tell('ready', { threads });
}

function match({ left, right, scale }) {
  const pointers = [];
  try {
    const pair = [left, right].flatMap((image) => {
      pointers.push(intoMemory(image.data));
      return [pointers.at(-1), image.width, image.height];
    });
    let status = nmrf._nmrf_check(...pair);
    if (status !== 0) return tell('error', failure(status));
    const check = JSON.parse(failure(0).text);
    for (const text of check.warnings) tell('warning', { text });
    const begin = performance.now();
    status = nmrf._nmrf_match(...pair, scale);
    const seconds = (performance.now() - begin) / 1000;
    if (status !== 0) return tell('error', failure(status));
    const [width, height] = [nmrf._nmrf_width(), nmrf._nmrf_height()];
    const count = width * height;
    // Copies that may leave the worker.
    const { buffer } = nmrf.HEAPU8;
    const map = new Float32Array(buffer, nmrf._nmrf_map(), count).slice();
    const confidence = new Float32Array(buffer, nmrf._nmrf_confidence(), count).slice();
    const mask = new Uint8Array(buffer, nmrf._nmrf_mask(), count).slice();
    const memory = nmrf.HEAPU8.length;
    return tell('result', { width, height, map, confidence, mask, check, seconds, memory },
      [map.buffer, confidence.buffer, mask.buffer]);
  } catch (error) {
    return tell('error', { kind: error.kind || 1, text: error.message });
  } finally {
    for (const at of pointers) nmrf._free(at);
    nmrf._nmrf_release();
  }
}

onmessage = ({ data }) => {
  if (data.type === 'match') match(data);
  else load(data.threads).catch((error) => tell('error', { kind: 1, text: String(error.message || error) }));
};
