// A static server for the page: node web/serve.mjs [FOLDER] [PORT]. Sends no special headers, as plain hosting.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css',
  '.wasm': 'application/wasm', '.png': 'image/png', '.webp': 'image/webp' };

export function serve(folder, port) {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
    try {
      const { size } = statSync(file);
      response.writeHead(200, { 'Content-Length': size, 'Cache-Control': 'no-cache',
        'Content-Type': TYPES[extname(file)] || 'application/octet-stream' });
      createReadStream(file).pipe(response);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = 'out/web', port = '8080'] = process.argv.slice(2);
  serve(folder, Number(port)).then(() => console.log(`http://localhost:${port}/`),
    (error) => { console.error(error.message); process.exit(1); });
}
