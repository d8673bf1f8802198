// Runs an ONNX model on ONNX Runtime and writes its outputs as raw floats.
//   node run_onnx.js FOLDER MODEL OUT THREADS REPEATS NAME=FILE:TYPE:1x3x480x640 ...
// FOLDER holds node_modules/onnxruntime-node; OUT gets NAME.bin per output. Prints the times of the
// runs in ms, the first included, and the peak of the process's memory in MB, as JSON.
const fs = require('fs');
const path = require('path');

const [folder, model, out, threads, repeats, ...inputs] = process.argv.slice(2);
const ort = require(path.join(folder, 'node_modules', 'onnxruntime-node'));

function tensor(spec) {
  const [name, rest] = spec.split('=');
  const [file, type, shape] = rest.split(':');
  const bytes = fs.readFileSync(file);
  const copy = new Uint8Array(bytes).buffer;
  const data = type === 'uint8' ? new Uint8Array(copy)
      : type === 'int64' ? new BigInt64Array(copy) : new Float32Array(copy);
  return [name, new ort.Tensor(type, data, shape.split('x').map(Number))];
}

async function main() {
  const began = process.hrtime.bigint();
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: Number(threads),
    interOpNumThreads: 1,
    logSeverityLevel: 3,
  });
  const ms = (from) => Number(process.hrtime.bigint() - from) / 1e6;
  const load = ms(began);
  const feeds = Object.fromEntries(inputs.map(tensor));
  const times = [];
  let results = {};
  for (let i = 0; i < Number(repeats); ++i) {
    const start = process.hrtime.bigint();
    results = await session.run(feeds);
    times.push(ms(start));
  }
  for (const [name, value] of Object.entries(results))
    fs.writeFileSync(path.join(out, name + '.bin'),
                     Buffer.from(value.data.buffer, value.data.byteOffset, value.data.byteLength));
  const memory = process.resourceUsage().maxRSS / 1024;
  console.log(JSON.stringify({load, times, memory}));
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
