// Times matches in Chromium and by the native command in turn, so that other work on the machine slows both:
// node web/test/bench.mjs [WIDTHxHEIGHT] [RUNS] [THREADS]. Native is held to SSE4: 128-bit vectors without fused
// multiply-add, which is what WebAssembly has.
import { execFileSync } from 'node:child_process';
import { Site, match, resultOf } from './page.mjs';

const [size = '640x480', runs = '6', threads = '2'] = process.argv.slice(2);
const [width, height] = size.split('x').map(Number);
const site = await Site.open();
const page = await site.page(`?threads=${threads}`);
await page.evaluate(async (w, h) => {
  const transfer = new DataTransfer();
  for (const side of ['left', 'right']) {
    const image = await createImageBitmap(await (await fetch(`samples/things/${side}.png`)).blob());
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [w, h];
    canvas.getContext('2d').drawImage(image, 0, 0, w, h);
    transfer.items.add(new File([await new Promise((done) => canvas.toBlob(done))], `${side}.png`));
  }
  const input = document.querySelector('[data-side=left] input');
  input.files = transfer.files;
  input.dispatchEvent(new Event('change'));
}, width, height);
await page.waitForSelector('#match:not(:disabled)');
// How long the page's own thread ever kept the browser waiting while the worker ran.
await page.evaluate(() => {
  let last = performance.now();
  window.longestWait = 0;
  setInterval(() => {
    const now = performance.now();
    if (!document.querySelector('#cancel').hidden) window.longestWait = Math.max(window.longestWait, now - last - 10);
    last = now;
  }, 10);
});
const native = () => {
  const command = [process.env.NMRF || 'build/release/nmrf', 'bench', '--model', 'models/nmrf-fast.safetensors', '--size', size,
    '--threads', threads, '--runs', '1', '--simd', 'sse4', '--json', '-q'];
  return JSON.parse(execFileSync(command[0], command.slice(1), { encoding: 'utf8' }).split('\n')[0]).seconds.median;
};
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const times = [];
const natives = [];
let memory = 0;
for (let i = 0; i < Number(runs); ++i) {
  if (!(await match(page))) throw new Error('no result');
  const result = await resultOf(page);
  times.push(result.seconds);
  memory = result.memory;
  if (i > 0) natives.push(native());  // the first match also compiles
}
const later = times.slice(1);
console.log(`Chromium, ${size}, ${threads} threads: first ${times[0].toFixed(2)} s, then median ` +
  `${median(later).toFixed(3)} s, best ${Math.min(...later).toFixed(3)} s; memory ${(memory / 1e6).toFixed(0)} MB; ` +
  `the page was busy for ${Math.round(await page.evaluate(() => window.longestWait))} ms at most`);
console.log(`native, held to SSE4: median ${median(natives).toFixed(3)} s, best ${Math.min(...natives).toFixed(3)} s`);
console.log(`ratio: ${(median(later) / median(natives)).toFixed(2)} of the medians, ` +
  `${(Math.min(...later) / Math.min(...natives)).toFixed(2)} of the best`);
await site.close();
