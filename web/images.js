// Photos from files: decoded by the browser, as RGBA.

export class PhotoError extends Error {}

function pixelsOf(source, x, y, width, height, toWidth = width, toHeight = height) {
  const canvas = document.createElement('canvas');
  canvas.width = toWidth;
  canvas.height = toHeight;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.imageSmoothingQuality = 'high';
  context.drawImage(source, x, y, width, height, 0, 0, toWidth, toHeight);
  const { data } = context.getImageData(0, 0, toWidth, toHeight);
  return { width: toWidth, height: toHeight, data, canvas };
}

// One photo: { name, width, height, data, canvas }. Colours are taken as stored, without profiles.
export async function readPhoto(blob, name) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' });
  } catch {
    throw new PhotoError(`“${name}” is not a picture that this browser can read. PNG, JPEG and WebP always work.`);
  }
  try {
    return { name, ...pixelsOf(bitmap, 0, 0, bitmap.width, bitmap.height) };
  } finally {
    bitmap.close();
  }
}

// Both halves of a side-by-side picture.
export function halves(photo) {
  const width = Math.floor(photo.width / 2);
  return ['left', 'right'].map((side, i) => ({
    name: `${photo.name}, ${side} half`,
    ...pixelsOf(photo.canvas, i * width, 0, width, photo.height),
  }));
}

// A picture wider than this, and alone, holds two views.
export function looksSideBySide(photo) {
  return photo.width / photo.height >= 2.2;
}

// The photo with at most so many pixels; itself when it is small enough.
export function reduced(photo, mostPixels) {
  const scale = Math.sqrt(mostPixels / (photo.width * photo.height));
  if (scale >= 1) return photo;
  const size = [photo.width, photo.height].map((side) => Math.max(1, Math.floor(side * scale)));
  return { name: photo.name, ...pixelsOf(photo.canvas, 0, 0, photo.width, photo.height, ...size) };
}
