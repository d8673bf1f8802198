// The page: choosing photos, running the matcher, showing the result.
import { createViewer } from './viewer/viewer.js';
import { PhotoError, halves, looksSideBySide, readPhoto, reduced } from './images.js';
import { MatchError, Matcher, mostPixels, threadsToUse } from './matcher.js';

const SAMPLES = {
  things: { folder: 'samples/things', suffix: 'png', name: 'things',
    calibration: { fx: 828.676147, cx: 325.194153, cy: 301.831573, baseline: 0.099795751, doffs: 0 } },
  garden: { folder: 'samples/garden', suffix: 'webp', name: 'garden',
    calibration: { fx: 687.12616, cx: 368.564392, cy: 48.172455, baseline: 0.269672662, doffs: 0 } },
};
const STAGES = {
  backbone: 'Looking at both photos',
  'cost volume': 'Comparing them',
  propagation: 'Passing candidates around',
  heads: 'Collecting candidates',
  gamma: 'Describing the surroundings',
  inference: 'Choosing among candidates',
  refinement: 'Refining',
  done: 'Done',
};

const find = (selector) => document.querySelector(selector);
const photos = { left: null, right: null };
let calibration;
let name = 'pair';
let busy = false;
let matcher;
let viewer;

function say(text, kind = '') {
  const item = document.createElement('li');
  item.textContent = text;
  item.className = kind;
  find('#messages').append(item);
}

function hush() {
  find('#messages').replaceChildren();
}

function update() {
  for (const side of ['left', 'right']) {
    const drop = find(`[data-side=${side}]`);
    const photo = photos[side];
    const canvas = drop.querySelector('canvas');
    canvas.hidden = !photo;
    drop.querySelector('.name').textContent = photo
      ? `${photo.name} · ${photo.width} × ${photo.height}` : '';
    if (!photo) continue;
    const scale = Math.min(1, 640 / photo.width);
    canvas.width = Math.round(photo.width * scale);
    canvas.height = Math.round(photo.height * scale);
    canvas.getContext('2d').drawImage(photo.canvas, 0, 0, canvas.width, canvas.height);
  }
  find('#match').disabled = busy || !photos.left || !photos.right;
  find('#cancel').hidden = !busy;
  find('#progress').hidden = !busy;
}

// Files that were chosen or dropped: two are left and right in the order of their names, a wide one holds both views.
async function take(files, side) {
  hush();
  const list = [...files].sort((a, b) => a.name.localeCompare(b.name));
  try {
    const read = await Promise.all(list.slice(0, 2).map((file) => readPhoto(file, file.name)));
    calibration = undefined;
    if (read.length === 2) [photos.left, photos.right] = read;
    else if (read.length === 1 && looksSideBySide(read[0])) {
      [photos.left, photos.right] = halves(read[0]);
      say('This picture is wide enough to hold two views: its halves are used as left and right photo.', 'plain');
    } else if (read.length === 1) photos[side || (photos.left && !photos.right ? 'right' : 'left')] = read[0];
    name = (photos.left?.name || 'pair').replace(/\.[^.]*$/, '').replace(/[^\w-]+/g, '_');
  } catch (error) {
    if (!(error instanceof PhotoError)) throw error;
    say(error.message, 'bad');
  }
  update();
}

async function takeSample(id) {
  hush();
  const { folder, suffix, ...sample } = SAMPLES[id];
  try {
    const [left, right] = await Promise.all(['left', 'right'].map(async (side) => {
      const response = await fetch(`${folder}/${side}.${suffix}`);
      if (!response.ok) throw new PhotoError(`The sample could not be loaded (${response.status}).`);
      return readPhoto(await response.blob(), `${side}.${suffix}`);
    }));
    Object.assign(photos, { left, right });
    ({ name, calibration } = sample);
  } catch (error) {
    say(error.message, 'bad');
  }
  update();
}

function scaledCalibration(scale) {
  if (!calibration) return undefined;
  const { fx, cx, cy, doffs } = calibration;
  return { ...calibration, fx: fx * scale, cx: (cx + 0.5) * scale - 0.5,
    cy: (cy + 0.5) * scale - 0.5, doffs: doffs * scale };
}

function callbacks() {
  const begin = performance.now();
  const bar = find('progress');
  const stage = find('#stage');
  let words = 'Starting';
  const show = () => {
    stage.textContent = `${words} · ${((performance.now() - begin) / 1000).toFixed(1)} s`;
  };
  bar.value = 0;
  const timer = setInterval(show, 100);
  return {
    loading: (share) => { words = `Loading the model, ${Math.round(100 * share)} %`; show(); },
    progress: (done, id) => { bar.value = done; words = STAGES[id] || id; show(); },
    warning: (text) => say(text),
    end: () => clearInterval(timer),
  };
}

// Matches at most `limit` pixels, and a quarter of them when memory does not suffice.
async function matchWithin(limit, scale, on) {
  const [left, right] = [photos.left, photos.right].map((photo) => reduced(photo, limit));
  if (left !== photos.left || right !== photos.right)
    say(`The photos were reduced from ${photos.left.width} × ${photos.left.height} to ${left.width} × ${left.height} ` +
      'pixels to fit into the memory of this device. Disparities are in pixels of the reduced photos.', 'plain');
  try {
    return { left, result: await matcher.match(left, right, scale, on) };
  } catch (error) {
    const smaller = left.width * left.height / 4;
    if (error.kind !== 5 || smaller < 128 * 128) throw error;
    say(error.message);
    matcher.cancel();
    return matchWithin(smaller, scale === 0 ? 1 : scale, on);
  }
}

function show({ left, result }) {
  const { width, height, map, confidence, mask, seconds, memory, check } = result;
  find('#result').hidden = false;
  viewer ||= createViewer(find('#viewer'));
  viewer.show({ name, width, height, map, confidence, mask, pixels: left.data,
    calibration: scaledCalibration(width / photos.left.width) });
  const filled = mask.reduce((sum, bits) => sum + (bits & 4 ? 1 : 0), 0) / mask.length;
  find('#facts').textContent = `${width} × ${height} pixels in ${seconds.toFixed(2)} s on ` +
    `${matcher.threads} ${matcher.threads === 1 ? 'thread' : 'threads'}, ${Math.round(memory / 1e6)} MB; ` +
    `${(100 * filled).toFixed(0)} % of the pixels are not visible in the right photo and were filled in.`;
  if (check.corrected) {
    const { offset, degrees, scale } = check.corrected;
    say(`The right photo was ${Math.abs(offset).toFixed(2)} px too ${offset > 0 ? 'low' : 'high'}, rotated by ` +
      `${degrees.toFixed(2)}° and scaled by ${scale.toFixed(4)}: corrected before matching.`, 'plain');
  }
  find('#result').scrollIntoView({ behavior: 'smooth', block: 'start' });
  self.nmrfPage.result = { width, height, map, confidence, mask, seconds, memory, check };
}

async function run() {
  hush();
  busy = true;
  self.nmrfPage.result = null;
  update();
  const on = callbacks();
  try {
    // A pair of two sizes is left to the library, which says so.
    const equal = photos.left.width === photos.right.width && photos.left.height === photos.right.height;
    show(await matchWithin(equal ? mostPixels() : Infinity, Number(find('#detail').value), on));
  } catch (error) {
    if (!(error instanceof MatchError)) throw error;
    if (error.kind !== 130) say(error.message, 'bad');
  } finally {
    on.end();
    busy = false;
    update();
  }
}

function listen() {
  for (const side of ['left', 'right']) {
    const input = find(`[data-side=${side}] input`);
    input.addEventListener('change', () => take(input.files, side).finally(() => { input.value = ''; }));
  }
  const body = document.body;
  addEventListener('dragover', (event) => { event.preventDefault(); body.classList.add('over'); });
  addEventListener('dragleave', () => body.classList.remove('over'));
  addEventListener('drop', (event) => {
    event.preventDefault();
    body.classList.remove('over');
    take(event.dataTransfer.files, event.target.closest?.('.drop')?.dataset.side);
  });
  find('#swap').addEventListener('click', () => {
    [photos.left, photos.right] = [photos.right, photos.left];
    update();
  });
  for (const button of document.querySelectorAll('[data-sample]'))
    button.addEventListener('click', () => takeSample(button.dataset.sample));
  find('#match').addEventListener('click', run);
  find('#cancel').addEventListener('click', () => matcher.cancel());
}

// On plain static hosting a service worker adds the headers that threads need; it acts from the next load on.
async function isolate() {
  if (self.crossOriginIsolated || !navigator.serviceWorker || sessionStorage.getItem('isolated')) return;
  if (new URLSearchParams(location.search).get('threads') === '1') return;
  sessionStorage.setItem('isolated', 'tried');
  try {
    await navigator.serviceWorker.register('isolate.js');
    await navigator.serviceWorker.ready;
    location.reload();
    await new Promise(() => {});
  } catch {
    // One thread it is.
  }
}

self.nmrfPage = { result: null };  // the last result, for tests and curious people
await isolate();
matcher = new Matcher(threadsToUse());
listen();
update();
find('#match').dataset.ready = 'yes';
