// The flat view: photo on the left of a divider, a layer of the result on the right of it; values
// under the cursor or under a crosshair that the arrow keys move.
import { MASK_CLASSES, TURBO, colorize, maskClass, maskWords, robustRange } from './colors.js';
import { depthOf } from './points.js';

const HATCH = 6;  // px between the stripes over filled pixels

export const LAYERS = [
  { id: 'disparity', label: 'Disparity', unit: 'px' },
  { id: 'depth', label: 'Depth', unit: 'm' },
  { id: 'confidence', label: 'Confidence', unit: '' },
  { id: 'mask', label: 'Mask', unit: '' },
];

function rounded(value) {
  if (!Number.isFinite(value)) return '–';
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

function paintMask(mask, width, to) {
  for (let i = 0; i < mask.length; ++i) {
    const [red, green, blue] = MASK_CLASSES[maskClass(mask[i])].color;
    const x = i % width;
    const stripe = mask[i] & 4 && (x + (i - x) / width) % HATCH < 2;
    to[4 * i] = stripe ? red * 0.6 : red;
    to[4 * i + 1] = stripe ? green * 0.6 : green;
    to[4 * i + 2] = stripe ? blue * 0.6 : blue;
    to[4 * i + 3] = 255;
  }
}

// elements: { canvas, bar, low, middle, high, legend, readout }, made by viewer.js.
export class MapView {
  constructor(elements) {
    this.el = elements;
    this.context = elements.canvas.getContext('2d');
    this.split = 0.5;
    this.layer = 'disparity';
    this.minConfidence = 0;
    this.cursor = null;
    this.dragging = false;
    this.onSplit = () => {};
    this.listen();
  }

  show(result, calibration) {
    const { width, height } = result;
    this.result = result;
    this.calibration = calibration;
    this.cursor = null;
    this.el.canvas.width = width;
    this.el.canvas.height = height;
    this.photo = document.createElement('canvas');
    this.photo.width = width;
    this.photo.height = height;
    this.photo.getContext('2d').putImageData(new ImageData(result.pixels, width, height), 0, 0);
    this.picture = document.createElement('canvas');
    this.picture.width = width;
    this.picture.height = height;
    this.range = robustRange(result.map);
    this.paint();
  }

  // Values of the chosen layer and their range; not for the mask.
  values() {
    const { map, confidence } = this.result;
    if (this.layer === 'confidence') return [confidence, [0, 1]];
    if (this.layer !== 'depth') return [map, this.range];
    const depth = map.map((value) => depthOf(value, this.calibration));
    return [depth, robustRange(depth)];
  }

  // Draws the layer into its own canvas, then the view.
  paint() {
    if (!this.result) return;
    const { width, height, mask, confidence } = this.result;
    const image = new ImageData(width, height);
    let range = null;
    if (this.layer === 'mask') {
      paintMask(mask, width, image.data);
    } else {
      const [values, between] = this.values();
      range = between;
      colorize(values, range, image.data);
      if (this.minConfidence > 0 && confidence)
        for (let i = 0; i < confidence.length; ++i)
          if (confidence[i] < this.minConfidence) image.data[4 * i + 3] = 0;
    }
    const context = this.picture.getContext('2d');
    context.putImageData(image, 0, 0);
    this.paintBar(range);
    this.draw();
  }

  paintBar(range) {
    const { bar, low, middle, high, scale, legend } = this.el;
    scale.hidden = range === null;
    legend.hidden = range !== null;
    if (range === null) return;
    const context = bar.getContext('2d');
    const row = context.createImageData(256, 1);
    for (let i = 0; i < 256; ++i) {
      row.data.set(TURBO.subarray(3 * i, 3 * i + 3), 4 * i);
      row.data[4 * i + 3] = 255;
    }
    context.putImageData(row, 0, 0);
    const { unit } = LAYERS.find((layer) => layer.id === this.layer);
    low.textContent = `${rounded(range[0])} ${unit}`;
    middle.textContent = `${rounded((range[0] + range[1]) / 2)} ${unit}`;
    high.textContent = `${rounded(range[1])} ${unit}`;
  }

  draw() {
    if (!this.result) return;
    const { canvas } = this.el;
    const { width, height } = canvas;
    const context = this.context;
    const at = Math.round(this.split * width);
    context.drawImage(this.photo, 0, 0);
    if (at < width) {
      // Pixels without a value show the photo, darkened.
      context.fillStyle = 'rgba(10, 12, 16, 0.72)';
      context.fillRect(at, 0, width - at, height);
      context.drawImage(this.picture, at, 0, width - at, height, at, 0, width - at, height);
    }
    const pixel = width / (canvas.clientWidth || width);  // of the screen, in those of the image
    if (this.split > 0 && this.split < 1) {
      context.fillStyle = 'rgba(255, 255, 255, 0.9)';
      context.fillRect(at - pixel, 0, 2 * pixel, height);
    }
    if (this.cursor) this.drawCursor(context, pixel);
    this.tell();
  }

  drawCursor(context, pixel) {
    const [x, y] = this.cursor;
    const reach = 9 * pixel;
    for (const [style, width] of [['rgba(0, 0, 0, 0.8)', 3], ['#fff', 1.2]]) {
      context.strokeStyle = style;
      context.lineWidth = width * pixel;
      context.beginPath();
      context.moveTo(x + 0.5 - reach, y + 0.5);
      context.lineTo(x + 0.5 + reach, y + 0.5);
      context.moveTo(x + 0.5, y + 0.5 - reach);
      context.lineTo(x + 0.5, y + 0.5 + reach);
      context.stroke();
    }
  }

  // The sentence about the pixel under the cursor.
  tell() {
    const { readout } = this.el;
    if (!this.cursor) {
      readout.textContent = 'Point at the picture to read values; arrow keys move the crosshair.';
      return;
    }
    const [x, y] = this.cursor;
    const { width, map, confidence, mask } = this.result;
    const i = y * width + x;
    const parts = [`x ${x}, y ${y}`];
    parts.push(Number.isFinite(map[i]) ? `${map[i].toFixed(2)} px` : 'no disparity');
    const depth = depthOf(map[i], this.calibration);
    if (!this.calibration.guessed && Number.isFinite(depth)) parts.push(`${depth.toFixed(3)} m`);
    if (confidence) parts.push(`confidence ${confidence[i].toFixed(2)}`);
    if (mask) parts.push(maskWords(mask[i]));
    readout.textContent = parts.join(' · ');
  }

  setSplit(share) {
    this.split = Math.min(1, Math.max(0, share));
    this.onSplit(this.split);
    this.draw();
  }

  setCursor(x, y) {
    const { width, height } = this.result;
    this.cursor = [Math.min(width - 1, Math.max(0, x)), Math.min(height - 1, Math.max(0, y))];
    this.draw();
  }

  listen() {
    const { canvas } = this.el;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    canvas.addEventListener('pointerdown', (event) => {
      if (!this.result) return;
      const [x] = place(event);
      const reach = (event.pointerType === 'touch' ? 28 : 12) / canvas.clientWidth;
      this.dragging = Math.abs(x - this.split) < reach;
      if (this.dragging) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!this.result) return;
      const [x, y] = place(event);
      if (this.dragging) this.setSplit(x);
      canvas.style.cursor =
        Math.abs(x - this.split) < 12 / canvas.clientWidth ? 'ew-resize' : 'crosshair';
      this.setCursor(Math.floor(x * canvas.width), Math.floor(y * canvas.height));
    });
    const release = () => { this.dragging = false; };
    canvas.addEventListener('pointerup', release);
    canvas.addEventListener('pointercancel', release);
    canvas.addEventListener('pointerleave', (event) => {
      if (event.pointerType === 'mouse' && !this.dragging && this.result) {
        this.cursor = null;
        this.draw();
      }
    });
    canvas.addEventListener('keydown', (event) => {
      const step = event.shiftKey ? 10 : 1;
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
      const move = moves[event.key];
      if (!move || !this.result) return;
      event.preventDefault();
      const [x, y] = this.cursor || [canvas.width >> 1, canvas.height >> 1];
      this.setCursor(x + move[0], y + move[1]);
    });
  }
}
