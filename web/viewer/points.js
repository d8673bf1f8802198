// From disparity to points. Calibration: { fx, cx, cy, baseline, doffs }, pixels of the map but for
// the baseline, metres; the rules are those of nmrf/geometry.h.

// A field of view of 60 degrees and a baseline of 0.1 m, for when nothing is known: shapes are
// plausible, sizes are not.
export function guessedCalibration(width, height) {
  return {
    fx: width / (2 * Math.tan(Math.PI / 6)),
    cx: (width - 1) / 2,
    cy: (height - 1) / 2,
    baseline: 0.1,
    doffs: 0,
    guessed: true,
  };
}

// Depth along the optical axis in metres; Infinity where it is unknown.
export function depthOf(disparity, calibration) {
  const shifted = disparity + calibration.doffs;
  return shifted > 0 && Number.isFinite(shifted)
    ? (calibration.baseline * calibration.fx) / shifted
    : Infinity;
}

// True when a neighbour differs by more than `threshold` pixels: such points float between surfaces.
function atEdge(map, width, height, x, y, threshold) {
  const i = y * width + x;
  const here = map[i];
  const differs = (there) => Number.isFinite(there) && Math.abs(there - here) > threshold;
  return (
    (x > 0 && differs(map[i - 1])) ||
    (x + 1 < width && differs(map[i + 1])) ||
    (y > 0 && differs(map[i - width])) ||
    (y + 1 < height && differs(map[i + width]))
  );
}

// The points of a result (see viewer.js), +x right, +y down, +z forward. Returns
// { count, positions: Float32Array [count, 3], colors: Uint8Array [count, 3] }. Options: unseen
// keeps occluded and filled pixels, minConfidence 0 to 1, edge in px (0 keeps all), maxDepth in m.
export function pointCloud(result, calibration, options = {}) {
  const { width, height, map, mask, confidence } = result;
  const { unseen = false, minConfidence = 0, edge = 0, maxDepth = Infinity } = options;
  const pixels = result.pixels;
  const positions = new Float32Array(3 * map.length);
  const colors = new Uint8Array(3 * map.length);
  let count = 0;
  for (let y = 0, i = 0; y < height; ++y)
    for (let x = 0; x < width; ++x, ++i) {
      const z = depthOf(map[i], calibration);
      if (!(z <= maxDepth) || !Number.isFinite(z)) continue;
      if (!unseen && mask && mask[i] !== 0) continue;
      if (confidence && minConfidence > 0 && !(confidence[i] >= minConfidence)) continue;
      if (edge > 0 && atEdge(map, width, height, x, y, edge)) continue;
      positions[3 * count] = ((x - calibration.cx) / calibration.fx) * z;
      positions[3 * count + 1] = ((y - calibration.cy) / (calibration.fy || calibration.fx)) * z;
      positions[3 * count + 2] = z;
      colors[3 * count] = pixels[4 * i];
      colors[3 * count + 1] = pixels[4 * i + 1];
      colors[3 * count + 2] = pixels[4 * i + 2];
      ++count;
    }
  return {
    count,
    positions: positions.subarray(0, 3 * count),
    colors: colors.subarray(0, 3 * count),
  };
}
