// A browser for the tests: the built page behind a plain static server, in headless Chromium.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';
import { serve } from '../serve.mjs';

export const FOLDER = process.env.NMRF_WEB || 'out/web';
export const SHOTS = process.env.NMRF_WEB_SHOTS || 'out/web-test';
const PATIENCE = 300000;  // ms; a busy machine is no failure

export class Site {
  static async open() {
    const site = new Site();
    site.server = await serve(FOLDER, 0);
    site.requests = [];
    site.server.on('request', (request) => site.requests.push(new URL(request.url, 'http://x').pathname));
    site.address = `http://localhost:${site.server.address().port}/`;
    site.profile = mkdtempSync(join(tmpdir(), 'nmrf-web-'));
    site.browser = await puppeteer.launch({
      executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
      userDataDir: site.profile,
      protocolTimeout: PATIENCE,
      timeout: PATIENCE,
      args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
        '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    return site;
  }

  async close() {
    await this.browser.close();
    this.server.close();
    rmSync(this.profile, { recursive: true, force: true });
  }

  // A loaded page; everything that the console calls an error is kept in page.problems.
  // context: another browser context, which shares no service worker and no cache.
  async page(query = '', { context = this.browser, width = 1280, height = 900, dark = false, mobile = false } = {}) {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.problems = [];
    page.on('console', (message) => {
      if (message.type() === 'error') page.problems.push(message.text());
    });
    page.on('pageerror', (error) => page.problems.push(String(error)));
    await page.setViewport({ width, height, isMobile: mobile, hasTouch: mobile, deviceScaleFactor: mobile ? 2 : 1 });
    await page.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' },
      { name: 'prefers-reduced-motion', value: 'reduce' },
    ]);
    await page.goto(this.address + query);
    // The first visit loads the page twice.
    const ready = () => page.waitForSelector('#match[data-ready=yes]');
    await ready().catch(ready);
    return page;
  }
}

export async function chooseSample(page, sample) {
  await page.click(`[data-sample=${sample}]`);
  await page.waitForSelector('#match:not(:disabled)');
}

// Presses Match and waits for the end, good or bad.
export async function match(page) {
  await page.click('#match');
  await page.waitForSelector('#match:not(:disabled)');
  return page.evaluate(() => window.nmrfPage.result !== null);
}

export function messages(page) {
  return page.$$eval('#messages li', (items) => items.map((item) => item.textContent));
}

// The arrays of the last result as Float32Array and so on.
export async function resultOf(page) {
  const text = await page.evaluate(() => {
    const { width, height, map, confidence, mask, seconds, memory } = window.nmrfPage.result;
    const packed = (array) => {
      const bytes = new Uint8Array(array.buffer);
      let letters = '';
      for (let i = 0; i < bytes.length; i += 32768) letters += String.fromCharCode(...bytes.subarray(i, i + 32768));
      return btoa(letters);
    };
    return { width, height, seconds, memory, map: packed(map), confidence: packed(confidence), mask: packed(mask) };
  });
  const bytes = (letters) => Uint8Array.from(Buffer.from(letters, 'base64'));
  return { ...text, map: new Float32Array(bytes(text.map).buffer),
    confidence: new Float32Array(bytes(text.confidence).buffer), mask: bytes(text.mask) };
}

// What a click on a button would save: { name, bytes }.
export async function saved(page, kind) {
  await page.evaluate(() => {
    window.savedFile = new Promise((resolve) => {
      HTMLAnchorElement.prototype.click = function click() {
        fetch(this.href).then((response) => response.arrayBuffer()).then((buffer) => {
          const bytes = new Uint8Array(buffer);
          let letters = '';
          for (let i = 0; i < bytes.length; i += 32768) letters += String.fromCharCode(...bytes.subarray(i, i + 32768));
          resolve({ name: this.download, letters: btoa(letters) });
        });
      };
    });
  });
  await page.$eval(`[data-save=${kind}]`, (button) => button.click());
  const { name, letters } = await page.evaluate(() => window.savedFile);
  return { name, bytes: Buffer.from(letters, 'base64') };
}
