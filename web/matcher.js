// The library behind promises: one worker, loaded on first use and replaced when a call is cancelled.

const BYTES_PER_PIXEL = 310;  // working memory of a match, 94 MB at 640 x 480: docs/performance.md
const LEAST_PIXELS = 32 * 32;

// Threads of this page: ?threads=N overrules; one without shared memory.
export function threadsToUse() {
  if (!self.crossOriginIsolated) return 1;
  const wanted = Number(new URLSearchParams(location.search).get('threads'));
  return Math.min(16, wanted >= 1 ? Math.floor(wanted) : navigator.hardwareConcurrency || 1);
}

// How many pixels this device is trusted with: an eighth of its memory, 0.25 to 1 GB.
export function mostPixels() {
  const wanted = Number(new URLSearchParams(location.search).get('pixels'));
  if (wanted >= LEAST_PIXELS) return wanted;
  const gigabytes = Math.min(1, Math.max(0.25, (navigator.deviceMemory || 4) / 8));
  return Math.floor((gigabytes * 1e9) / BYTES_PER_PIXEL);
}

export class MatchError extends Error {
  constructor({ kind, text }) {
    super(text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.'));
    this.kind = kind;
  }
}

export class Matcher {
  constructor(threads) {
    this.threads = threads;
    this.worker = null;
  }

  // Starts the worker and loads the model, once. on: { loading(share), progress(done, stage),
  // warning(text) }, all optional.
  load(on = {}) {
    this.on = on;
    if (!this.ready) {
      this.worker = new Worker('worker.js');
      this.ready = this.answer('ready');
      this.worker.postMessage({ type: 'load', threads: this.threads });
      this.ready.catch(() => this.cancel());
    }
    return this.ready;
  }

  // The next message of that type, or an error.
  answer(wanted) {
    const { worker } = this;
    return new Promise((resolve, reject) => {
      this.reject = reject;
      worker.onmessage = ({ data }) => {
        if (data.type === wanted) resolve(data);
        else if (data.type === 'error') reject(new MatchError(data));
        else if (data.type === 'loading') this.on.loading?.(data.share);
        else if (data.type === 'progress') this.on.progress?.(data.done, data.stage);
        else if (data.type === 'warning') this.on.warning?.(data.text);
      };
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new MatchError({ kind: 1, text: event.message || 'the worker could not be started' }));
      };
    });
  }

  async match(left, right, scale, on) {
    await this.load(on);
    this.on = on;
    const done = this.answer('result');
    const plain = ({ width, height, data }) => ({ width, height, data });
    this.worker.postMessage({ type: 'match', left: plain(left), right: plain(right), scale });
    return done;
  }

  // Ends what is running; the next call starts afresh.
  cancel() {
    this.worker?.terminate();
    this.worker = null;
    this.ready = null;
    this.reject?.(new MatchError({ kind: 130, text: 'cancelled' }));
  }
}
