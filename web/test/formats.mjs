// Readers of the files that the page saves, written apart from the writers.
import { inflateSync } from 'node:zlib';

// Rows from the top.
export function readPfm(bytes) {
  const header = /^Pf\n(\d+) (\d+)\n(-?[\d.]+)\n/.exec(bytes.subarray(0, 64).toString('latin1'));
  if (!header) throw new Error('no PFM header');
  const [width, height] = [Number(header[1]), Number(header[2])];
  const map = new Float32Array(width * height);
  const little = Number(header[3]) < 0;
  let at = header[0].length;
  for (let y = height - 1; y >= 0; --y)
    for (let x = 0; x < width; ++x, at += 4)
      map[y * width + x] = little ? bytes.readFloatLE(at) : bytes.readFloatBE(at);
  if (at !== bytes.length) throw new Error(`${bytes.length - at} bytes too many`);
  return { width, height, map };
}

export function readPly(bytes) {
  const end = bytes.indexOf('end_header\n') + 11;
  const header = bytes.subarray(0, end).toString('latin1');
  const count = Number(/element vertex (\d+)/.exec(header)[1]);
  if (bytes.length !== end + 15 * count) throw new Error('the size does not fit the number of points');
  const points = [];
  for (let at = end; at < bytes.length; at += 15)
    points.push({ x: bytes.readFloatLE(at), y: bytes.readFloatLE(at + 4), z: bytes.readFloatLE(at + 8),
      rgb: [...bytes.subarray(at + 12, at + 15)] });
  return { header, count, points };
}

// 16-bit grey without interlacing, filter 0.
export function readPng16(bytes) {
  let at = 8;
  let size;
  const data = [];
  while (at < bytes.length) {
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString('latin1', at + 4, at + 8);
    const body = bytes.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') size = { width: body.readUInt32BE(0), height: body.readUInt32BE(4), bits: body[8], color: body[9] };
    if (type === 'IDAT') data.push(body);
    at += 12 + length;
  }
  const rows = inflateSync(Buffer.concat(data));
  const values = new Uint16Array(size.width * size.height);
  for (let y = 0; y < size.height; ++y) {
    const row = y * (1 + 2 * size.width);
    if (rows[row] !== 0) throw new Error('another filter than 0');
    for (let x = 0; x < size.width; ++x) values[y * size.width + x] = rows.readUInt16BE(row + 1 + 2 * x);
  }
  return { ...size, values };
}
