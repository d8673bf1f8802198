// Results as files: the formats that `nmrf match` writes.

const encoder = new TextEncoder();

// Little-endian, rows from the bottom up, unknown = inf.
export function toPfm({ width, height, map }) {
  const header = encoder.encode(`Pf\n${width} ${height}\n-1.0\n`);
  const bytes = new Uint8Array(header.length + 4 * map.length);
  bytes.set(header);
  const view = new DataView(bytes.buffer, header.length);
  for (let y = 0, at = 0; y < height; ++y)
    for (let x = 0; x < width; ++x, at += 4) {
      const value = map[(height - 1 - y) * width + x];
      view.setFloat32(at, Number.isFinite(value) ? value : Infinity, true);
    }
  return new Blob([bytes], { type: 'application/octet-stream' });
}

// Binary little-endian, metres. cloud: pointCloud() of points.js.
export function toPly({ count, positions, colors }, comment) {
  const header = encoder.encode(
    'ply\nformat binary_little_endian 1.0\n' +
      `comment ${comment}\n` +
      `element vertex ${count}\n` +
      'property float x\nproperty float y\nproperty float z\n' +
      'property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n',
  );
  const bytes = new Uint8Array(header.length + 15 * count);
  bytes.set(header);
  const view = new DataView(bytes.buffer, header.length);
  for (let i = 0, at = 0; i < count; ++i, at += 15) {
    for (let c = 0; c < 3; ++c) {
      view.setFloat32(at + 4 * c, positions[3 * i + c], true);
      view.setUint8(at + 12 + c, colors[3 * i + c]);
    }
  }
  return new Blob([bytes], { type: 'application/octet-stream' });
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; ++k) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

function pngChunk(type, data) {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(encoder.encode(type), 4);
  bytes.set(data, 8);
  let crc = 0xffffffff;
  for (let i = 4; i < 8 + data.length; ++i) crc = CRC_TABLE[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  view.setUint32(8 + data.length, (crc ^ 0xffffffff) >>> 0);
  return bytes;
}

async function deflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// 16-bit grey, 256 x disparity, 1 to 65535; 0 = unknown.
export async function toPng16({ width, height, map }) {
  const rows = new Uint8Array(height * (1 + 2 * width));
  const view = new DataView(rows.buffer);
  for (let y = 0, at = 0, i = 0; y < height; ++y) {
    ++at;  // filter type 0
    for (let x = 0; x < width; ++x, ++i, at += 2) {
      const value = map[i];
      if (Number.isFinite(value))
        view.setUint16(at, Math.min(65535, Math.max(1, Math.round(256 * value))));
    }
  }
  const size = new Uint8Array(13);
  new DataView(size.buffer).setUint32(0, width);
  new DataView(size.buffer).setUint32(4, height);
  size[8] = 16;  // bits, grey
  const signature = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10);
  const parts = [signature, pngChunk('IHDR', size), pngChunk('IDAT', await deflated(rows)),
    pngChunk('IEND', new Uint8Array(0))];
  return new Blob(parts, { type: 'image/png' });
}

export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
