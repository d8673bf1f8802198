// The 3-D view: coloured points on WebGL 2, seen by a camera that orbits a target. Drag turns,
// right or Shift drag and two fingers move, the wheel and a pinch zoom; arrow keys, + and - and 0.

const VERTEX = `#version 300 es
in vec3 position;
in vec3 color;
uniform mat4 view;
uniform float focal;   // of clip space, vertical
uniform float aspect;
uniform vec2 center;   // where the optical axis meets clip space
uniform float near;
uniform float size;    // px of the screen for a point of unit size at unit depth
out vec3 tint;
void main() {
  vec4 seen = view * vec4(position.x, -position.y, -position.z, 1.0);
  float far = near * 1e5;
  gl_Position = vec4(seen.x * focal / aspect - seen.z * center.x, seen.y * focal - seen.z * center.y,
                     -(seen.z * (far + near) + 2.0 * far * near) / (far - near), -seen.z);
  gl_PointSize = clamp(size * position.z / max(-seen.z, near), 1.0, 40.0);
  tint = color;
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec3 tint;
out vec4 shade;
void main() { shade = vec4(tint, 1.0); }`;

function compiled(gl, type, source) {
  const shader = gl.createShader(type);
  gl.shaderSource(shader, source);
  gl.compileShader(shader);
  if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
  return shader;
}

// Between the near and the far end of the points, nearer to the near one: what an orbit turns about.
function middleDepth({ count, positions }) {
  const step = Math.max(1, Math.floor(count / 5000));
  const depths = Float32Array.from({ length: Math.ceil(count / step) }, (_, i) => positions[3 * i * step + 2]).sort();
  if (depths.length === 0) return 1;
  const at = (share) => depths[Math.round(share * (depths.length - 1))];
  return 2 / (1 / at(0.05) + 1 / at(0.95));
}

export class CloudView {
  // Throws when the browser has no WebGL 2.
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext('webgl2', { antialias: true, alpha: true });
    if (!gl) throw new Error('This browser offers no WebGL 2, which the 3-D view needs.');
    this.gl = gl;
    const program = gl.createProgram();
    gl.attachShader(program, compiled(gl, gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, compiled(gl, gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(program);
    gl.useProgram(program);
    this.at = (name) => gl.getUniformLocation(program, name);
    this.buffers = ['position', 'color'].map((name) => {
      const place = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(place);
      return { place, buffer: gl.createBuffer() };
    });
    gl.enable(gl.DEPTH_TEST);
    this.pointSize = 1.5;
    this.count = 0;
    this.swing = 0;
    this.focal = 1;
    this.center = [0, 0];
    this.home = { turn: 0, tilt: 0, distance: 1, target: [0, 0, -1] };
    this.reset();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  // cloud: pointCloud() of points.js. calibration gives the field of view, that of the photo.
  show(cloud, calibration, { width, height }, keepCamera = false) {
    const { gl } = this;
    const [positions, colors] = this.buffers;
    gl.bindBuffer(gl.ARRAY_BUFFER, positions.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, cloud.positions, gl.STATIC_DRAW);
    gl.vertexAttribPointer(positions.place, 3, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, colors.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, cloud.colors, gl.STATIC_DRAW);
    gl.vertexAttribPointer(colors.place, 3, gl.UNSIGNED_BYTE, true, 0, 0);
    this.count = cloud.count;
    this.focal = (2 * calibration.fx) / height;
    this.center = [(2 * calibration.cx + 1) / width - 1, 1 - (2 * calibration.cy + 1) / height];
    const depth = middleDepth(cloud);
    this.rows = height;
    this.home = { turn: 0, tilt: 0, distance: depth, target: this.targetInView(depth, width / height) };
    if (!keepCamera) this.reset();
    this.draw();
  }

  reset() {
    this.turn = this.home.turn;
    this.tilt = this.home.tilt;
    this.distance = this.home.distance;
    this.target = [...this.home.target];
    this.draw();
  }

  // The columns of the camera in the world: right, up, back.
  axes() {
    const [st, ct] = [Math.sin(this.turn), Math.cos(this.turn)];
    const [sp, cp] = [Math.sin(this.tilt), Math.cos(this.tilt)];
    return [[ct, 0, -st], [st * sp, cp, ct * sp], [st * cp, -sp, ct * cp]];
  }

  // The target as the camera sees it: in the middle of the picture, which the optical axis may miss.
  targetInView(distance, aspect) {
    const [x, y] = this.center;
    return [(-x * distance * aspect) / this.focal, (-y * distance) / this.focal, -distance];
  }

  viewMatrix(aspect) {
    const axes = this.axes();
    const seen = this.targetInView(this.distance, aspect);
    const [x, y, z] = this.target;
    const back = axes.map((axis, i) => seen[i] - axis[0] * x - axis[1] * y - axis[2] * z);
    const [right, up, behind] = axes;
    return new Float32Array([right[0], up[0], behind[0], 0, right[1], up[1], behind[1], 0,
      right[2], up[2], behind[2], 0, back[0], back[1], back[2], 1]);
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const { gl, canvas } = this;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (width === 0 || height === 0) return;
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (this.count === 0) return;
    gl.uniformMatrix4fv(this.at('view'), false, this.viewMatrix(width / height));
    gl.uniform2fv(this.at('center'), this.center);
    gl.uniform1f(this.at('focal'), this.focal);
    gl.uniform1f(this.at('aspect'), width / height);
    gl.uniform1f(this.at('near'), 0.02 * this.home.distance);
    gl.uniform1f(this.at('size'), (this.pointSize * height) / this.rows);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }

  // A gentle swing that shows the depth, until somebody takes over.
  startSwing() {
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const begin = performance.now();
    const id = ++this.swing;
    const step = (now) => {
      if (this.swing !== id) return;
      const t = (now - begin) / 1000;
      this.turn = 0.28 * Math.sin(t * 0.9);
      this.tilt = 0.1 * Math.sin(t * 0.6);
      this.drawNow();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  stopSwing() {
    ++this.swing;
  }

  rotate(dx, dy) {
    this.turn -= dx;
    this.tilt = Math.min(1.5, Math.max(-1.5, this.tilt - dy));
    this.draw();
  }

  // dx, dy: shares of the view's height.
  move(dx, dy) {
    const [right, up] = this.axes();
    const scale = (2 * this.distance) / this.focal;
    for (let i = 0; i < 3; ++i) this.target[i] += scale * (dy * up[i] - dx * right[i]);
    this.draw();
  }

  zoom(factor) {
    const least = 0.02 * this.home.distance;
    this.distance = Math.min(20 * this.home.distance, Math.max(least, this.distance * factor));
    this.draw();
  }

  listen() {
    const { canvas } = this;
    const fingers = new Map();
    let spread = 0;
    canvas.addEventListener('contextmenu', (event) => event.preventDefault());
    canvas.addEventListener('pointerdown', (event) => {
      this.stopSwing();
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      spread = 0;
    });
    const release = (event) => {
      fingers.delete(event.pointerId);
      spread = 0;
    };
    canvas.addEventListener('pointerup', release);
    canvas.addEventListener('pointercancel', release);
    canvas.addEventListener('pointermove', (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const dx = (event.clientX - before[0]) / canvas.clientHeight;
      const dy = (event.clientY - before[1]) / canvas.clientHeight;
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()];
        const now = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (spread > 0 && now > 0) this.zoom(spread / now);
        spread = now;
        this.move(dx / 2, dy / 2);
      } else if (event.shiftKey || event.buttons & 2) {
        this.move(dx, dy);
      } else {
        this.rotate(2.5 * dx, 2.5 * dy);
      }
    });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.stopSwing();
      this.zoom(Math.exp(event.deltaY * 0.001));
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const keys = {
        ArrowLeft: () => this.rotate(-0.08, 0),
        ArrowRight: () => this.rotate(0.08, 0),
        ArrowUp: () => this.rotate(0, -0.08),
        ArrowDown: () => this.rotate(0, 0.08),
        '+': () => this.zoom(0.9),
        '=': () => this.zoom(0.9),
        '-': () => this.zoom(1.1),
        0: () => this.reset(),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      this.stopSwing();
      keys[event.key]();
    });
  }
}
