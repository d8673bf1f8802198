// Drives the built page as a user would. NMRF_NATIVE: the map of the bundled pair by `nmrf match --scale 1 --precision float32`.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { TURBO } from '../viewer/colors.js';
import { readPfm, readPly, readPng16 } from './formats.mjs';
import { FOLDER, SHOTS, Site, chooseSample, match, messages, resultOf, saved } from './page.mjs';

let site;
let page;     // with threads, after a match of the bundled pair
let threaded; // its result

before(async () => {
  mkdirSync(SHOTS, { recursive: true });
  site = await Site.open();
});
after(() => site.close());

const shot = (of, name) => of.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
const differences = (a, b) => a.map((value, i) => Math.abs(value - b[i])).sort();
const quantileOf = (sorted, share) => sorted[Math.round(share * (sorted.length - 1))];

// Gives files made in the page (canvas or text) to the input of one side.
function give(of, side, makeFiles) {
  return of.evaluate(async (where, source) => {
    const files = await new Function(`return (${source})()`)();
    const transfer = new DataTransfer();
    for (const file of files) transfer.items.add(file);
    const input = document.querySelector(`[data-side=${where}] input`);
    input.files = transfer.files;
    input.dispatchEvent(new Event('change'));
  }, side, makeFiles.toString());
}

test('the colours are those of the library', () => {
  const source = readFileSync('src/viz/color_tables.h', 'utf8');
  const table = /kTurboTable = \{([^}]*)\}/.exec(source)[1].match(/0x[0-9a-f]{6}/g).map(Number);
  assert.equal(table.length, 256);
  table.forEach((rgb, i) =>
    assert.deepEqual([...TURBO.subarray(3 * i, 3 * i + 3)], [rgb >> 16, (rgb >> 8) & 255, rgb & 255]));
});

test('everything together stays below 5 MB', () => {
  const size = (folder) => readdirSync(folder).reduce((sum, entry) => {
    const path = join(folder, entry);
    return sum + (statSync(path).isDirectory() ? size(path) : statSync(path).size);
  }, 0);
  assert.ok(size(FOLDER) < 5e6, `${size(FOLDER)} bytes`);
});

test('with threads, the map is the native one', async () => {
  page = await site.page('?threads=2');
  assert.ok(await page.evaluate(() => window.crossOriginIsolated), 'the service worker isolates the page');
  await chooseSample(page, 'things');
  assert.ok(await match(page), (await messages(page)).join(' '));
  threaded = await resultOf(page);
  const native = readPfm(readFileSync(process.env.NMRF_NATIVE));
  assert.deepEqual([threaded.width, threaded.height], [native.width, native.height]);
  const apart = differences(threaded.map, native.map);
  const [middle, most] = [quantileOf(apart, 0.5), quantileOf(apart, 0.99)];
  console.log(`difference from the native map: median ${middle.toExponential(1)} px, 99 % ${most.toExponential(1)} px; ` +
    `${threaded.seconds.toFixed(2)} s, ${(threaded.memory / 1e6).toFixed(0)} MB`);
  assert.ok(middle <= 1e-3);
  assert.ok(most <= 0.05);
  assert.ok(threaded.memory <= 400e6);
  assert.match(await page.$eval('#facts', (facts) => facts.textContent), /576 × 432 pixels in .* on 2 threads/);
  assert.deepEqual(await messages(page), []);
  assert.deepEqual(page.problems, []);
  await shot(page, 'desktop');
});

test('without threads, the same map to the last bit', async () => {
  const context = await site.browser.createBrowserContext();
  const single = await site.page('?threads=1', { context });
  assert.ok(!(await single.evaluate(() => window.crossOriginIsolated)));
  await chooseSample(single, 'things');
  assert.ok(await match(single), (await messages(single)).join(' '));
  const result = await resultOf(single);
  assert.deepEqual(result.map, threaded.map);
  assert.deepEqual(result.mask, threaded.mask);
  assert.match(await single.$eval('#facts', (facts) => facts.textContent), /1 thread,/);
  assert.deepEqual(single.problems, []);
  await context.close();
});

test('the model is fetched once and kept', async () => {
  const fetched = () => site.requests.filter((path) => path.endsWith('.safetensors')).length;
  const before = fetched();
  const again = await site.page('?threads=2');
  await chooseSample(again, 'garden');
  assert.ok(await match(again));
  assert.equal(fetched(), before);
  await again.close();
});

test('values under the cursor, by keyboard', async () => {
  await page.focus('.nv-map');
  await page.keyboard.press('ArrowRight');
  const said = await page.$eval('.nv-readout', (readout) => readout.textContent);
  const [x, y] = [576 / 2 + 1, 432 / 2];
  const value = threaded.map[y * 576 + x].toFixed(2);
  assert.ok(said.startsWith(`x ${x}, y ${y} · ${value} px`), said);
  assert.match(said, /confidence 0\.\d\d|confidence 1\.00/);
});

test('slider, layers and colour bar', async () => {
  const colorAt = (share) => page.$eval('.nv-map', (canvas, at) =>
    [...canvas.getContext('2d').getImageData(Math.round(at * canvas.width), 20, 1, 1).data], share);
  const split = (share) => page.$eval('[data-set=split]', (slider, value) => {
    slider.value = value;
    slider.dispatchEvent(new Event('input'));
  }, share);
  await split(1);
  const photo = await colorAt(0.5);
  await split(0);
  const map = await colorAt(0.5);
  assert.notDeepEqual(photo, map);
  assert.match(await page.$eval('.nv-low', (low) => low.textContent), /^\d+(\.\d+)? px$/);
  for (const layer of ['depth', 'confidence', 'mask']) {
    await page.click(`[data-layer=${layer}] span`);
    assert.notDeepEqual(await colorAt(0.5), map, layer);
    await shot(page, `layer-${layer}`);
  }
  assert.ok(await page.$eval('.nv-legend', (legend) => !legend.hidden));
  await page.click('[data-layer=disparity] span');
  assert.deepEqual(await colorAt(0.5), map);
});

test('point cloud', async () => {
  await page.click('[data-tab=cloud][role=tab]');
  await new Promise((done) => setTimeout(done, 500));
  const drawn = await page.$eval('.nv-cloud', (canvas) => {
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    return new Promise((resolve) => requestAnimationFrame(() => {
      canvas.dispatchEvent(new KeyboardEvent('keydown', { key: '0' }));
      requestAnimationFrame(() => {
        const context = copy.getContext('2d');
        context.drawImage(canvas, 0, 0);
        const { data } = context.getImageData(0, 0, copy.width, copy.height);
        let count = 0;
        for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
        resolve(count / (copy.width * copy.height));
      });
    }));
  });
  assert.ok(drawn > 0.3, `${drawn} of the view is covered`);
  await shot(page, 'cloud');
  await page.focus('.nv-cloud');
  for (let i = 0; i < 6; ++i) await page.keyboard.press('ArrowLeft');
  await shot(page, 'cloud-turned');
  assert.deepEqual(page.problems, []);
});

test('files', async () => {
  const pfm = await saved(page, 'pfm');
  assert.equal(pfm.name, 'things_disparity.pfm');
  assert.deepEqual(readPfm(pfm.bytes).map, threaded.map);
  const png = readPng16((await saved(page, 'png16')).bytes);
  assert.deepEqual([png.width, png.height, png.bits, png.color], [576, 432, 16, 0]);
  threaded.map.forEach((value, i) => assert.ok(Math.abs(png.values[i] / 256 - value) <= 1 / 512 + 1e-6));
  await page.$eval('[data-set=edges]', (box) => { if (box.checked) box.click(); });
  const ply = readPly((await saved(page, 'ply')).bytes);
  assert.equal(ply.count, threaded.mask.reduce((sum, bits) => sum + (bits === 0 ? 1 : 0), 0));
  const first = threaded.mask.indexOf(0);
  const depth = (828.676147 * 0.099795751) / threaded.map[first];
  assert.ok(Math.abs(ply.points[0].z - depth) < 1e-4);
  assert.ok(Math.abs(ply.points[0].x - ((first % 576) - 325.194153) / 828.676147 * depth) < 1e-4);
  const picture = await saved(page, 'picture');
  assert.equal(picture.bytes.subarray(1, 4).toString(), 'PNG');
});

test('a file that is no picture', async () => {
  const other = await site.page('?threads=2');
  await give(other, 'left', () => [new File(['no picture'], 'notes.txt')]);
  await other.waitForSelector('#messages li.bad');
  assert.match((await messages(other))[0], /“notes.txt” is not a picture/);
  assert.ok(await other.$eval('#match', (button) => button.disabled));
  await other.close();
});

// Pictures of the sample, changed: drawn by (context, left, right) and named.
const drawFiles = `async (draw) => {
  const images = await Promise.all(['left', 'right'].map(async (side) =>
    createImageBitmap(await (await fetch('samples/things/' + side + '.png')).blob())));
  return Promise.all(draw(...images).map(async ([name, canvas]) =>
    new File([await new Promise((done) => canvas.toBlob(done))], name)));
}`;
const files = (draw) => `async () => (${drawFiles})((left, right) => {
  const canvasOf = (width, height, paint) => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [width, height];
    paint(canvas.getContext('2d'));
    return canvas;
  };
  return (${draw})(left, right, canvasOf);
})`;

async function pairOf(query, draw) {
  const other = await site.page(query);
  await give(other, 'left', files(draw.toString()));
  await other.waitForSelector('#match:not(:disabled)');
  const done = await match(other);
  return { other, done, said: (await messages(other)).join('\n') };
}

test('photos of two sizes are refused in words', async () => {
  const { other, done, said } = await pairOf('?threads=2', (left, right, canvasOf) => [
    ['a.png', canvasOf(576, 432, (c) => c.drawImage(left, 0, 0))],
    ['b.png', canvasOf(400, 300, (c) => c.drawImage(right, 0, 0))]]);
  assert.ok(!done);
  assert.match(said, /left image is 576x432 but the right one is 400x300/);
  await chooseSample(other, 'garden');
  assert.ok(await match(other), 'the next pair is matched');
  assert.deepEqual(other.problems, []);
  await shot(other, 'garden');
  await other.close();
});

test('swapped photos get a warning', async () => {
  const { other, done, said } = await pairOf('?threads=2', (left, right, canvasOf) => [
    ['a.png', canvasOf(576, 432, (c) => c.drawImage(right, 0, 0))],
    ['b.png', canvasOf(576, 432, (c) => c.drawImage(left, 0, 0))]]);
  assert.ok(done);
  assert.match(said, /swap/i);
  await shot(other, 'swapped');
  await other.close();
});

test('photos that are not rectified get a warning', async () => {
  const { other, said } = await pairOf('?threads=2', (left, right, canvasOf) => [
    ['a.png', canvasOf(576, 400, (c) => c.drawImage(left, 0, 0))],
    ['b.png', canvasOf(576, 400, (c) => c.drawImage(right, 0, -32))]]);
  assert.match(said, /rectif/i);
  await other.close();
});

test('a right photo that is a little too high is corrected, and it says so', async () => {
  const { other, done, said } = await pairOf('?threads=2', (left, right, canvasOf) => [
    ['a.png', canvasOf(576, 432, (c) => c.drawImage(left, 0, 0))],
    ['b.png', canvasOf(576, 432, (c) => c.drawImage(right, 0, -2))]]);
  assert.ok(done);
  assert.match(said, /^The right photo was (1\.[6-9]|2\.[0-4])\d px too high, .* corrected before matching\.$/);
  const apart = differences((await resultOf(other)).map.slice(0, 576 * 400), threaded.map.slice(0, 576 * 400));
  assert.ok(quantileOf(apart, 0.8) < 0.5, `${quantileOf(apart, 0.8)}`);
  await other.close();
});

test('a side-by-side picture is cut in two', async () => {
  const { other, done } = await pairOf('?threads=2', (left, right, canvasOf) => [
    ['both.png', canvasOf(1152, 432, (c) => { c.drawImage(left, 0, 0); c.drawImage(right, 576, 0); })]]);
  assert.ok(done);
  assert.deepEqual((await resultOf(other)).map, threaded.map);
  await other.close();
});

test('photos too large for the device are reduced, and it says so', async () => {
  const { other, done, said } = await pairOf('?threads=2&pixels=62208', (left, right, canvasOf) => [
    ['a.png', canvasOf(576, 432, (c) => c.drawImage(left, 0, 0))],
    ['b.png', canvasOf(576, 432, (c) => c.drawImage(right, 0, 0))]]);
  assert.ok(done);
  assert.match(said, /reduced from 576 × 432 to 288 × 216/);
  const { width, map } = await resultOf(other);
  assert.equal(width, 288);
  const middle = (values) => Float32Array.from(values).sort()[values.length >> 1];
  assert.ok(Math.abs(2 * middle(map) - middle(threaded.map)) < 2);
  await other.close();
});

test('a match can be cancelled and started again', async () => {
  const other = await site.page('?threads=2');
  await chooseSample(other, 'garden');
  await other.click('#match');
  await other.waitForSelector('#cancel:not([hidden])');
  await other.click('#cancel');
  await other.waitForSelector('#match:not(:disabled)');
  assert.equal(await other.evaluate(() => window.nmrfPage.result), null);
  assert.ok(await match(other));
  assert.deepEqual(other.problems, []);
  await other.close();
});

for (const dark of [false, true])
  test(`phone width, ${dark ? 'dark' : 'light'}`, async () => {
    const phone = await site.page('?threads=2', { width: 390, height: 844, dark, mobile: true });
    await chooseSample(phone, 'garden');
    assert.ok(await match(phone));
    const wide = await phone.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(wide[0] <= wide[1], `nothing sticks out: ${wide}`);
    await shot(phone, dark ? 'phone-dark' : 'phone');
    await phone.click('[data-tab=cloud][role=tab]');
    await new Promise((done) => setTimeout(done, 500));
    await shot(phone, dark ? 'phone-cloud-dark' : 'phone-cloud');
    assert.deepEqual(phone.problems, []);
    await phone.close();
  });
