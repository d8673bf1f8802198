// Times matches of the bundled pair in Chromium: node web/test/bench.mjs [WIDTHxHEIGHT] [RUNS] [THREADS].
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
const times = [];
let memory = 0;
for (let i = 0; i < Number(runs); ++i) {
  if (!(await match(page))) throw new Error('no result');
  const result = await resultOf(page);
  times.push(result.seconds);
  memory = result.memory;
}
const sorted = times.slice(1).sort((a, b) => a - b);
console.log(`Chromium, ${size}, ${threads} threads: first ${times[0].toFixed(2)} s, then median ` +
  `${sorted[sorted.length >> 1].toFixed(3)} s, best ${sorted[0].toFixed(3)} s; memory ${(memory / 1e6).toFixed(0)} MB; ` +
  `the page was busy for ${Math.round(await page.evaluate(() => window.longestWait))} ms at most`);
await site.close();
