// Shows a disparity map: flat with values under the cursor, and as a coloured point cloud. Knows
// nothing of how the map came about; needs no other library and no network.
//
//   const viewer = createViewer(element);           // fills the element; style: viewer.css
//   viewer.show({
//     name: 'left',                                 // of files that are saved
//     width, height,
//     map: Float32Array,                            // disparity in px, rows from the top; unknown: Infinity
//     confidence: Float32Array,                     // 0 to 1; or left out
//     mask: Uint8Array,                             // bits: 1 occluded, 2 out of view, 4 filled in; or left out
//     pixels: Uint8ClampedArray,                    // RGBA of the left photo, width x height
//     calibration: { fx, fy, cx, cy, baseline, doffs },  // px and metres; left out: guessed, may be typed in
//   });
//
// To make one script for a page of its own, viewer/bundle.cmake joins the files. Hence the rules for
// them: an import is one line, exports stand before declarations, top-level names are unique.
import { MASK_CLASSES } from './colors.js';
import { guessedCalibration, pointCloud } from './points.js';
import { save, toPfm, toPly, toPng16 } from './files.js';
import { LAYERS, MapView } from './map_view.js';
import { CloudView } from './cloud_view.js';

const MARKUP = `
<div class="nv-top">
  <div class="nv-tabs" role="tablist" aria-label="View">
    <button type="button" role="tab" data-tab="map" aria-selected="true">Map</button>
    <button type="button" role="tab" data-tab="cloud" aria-selected="false" tabindex="-1">3-D</button>
  </div>
  <div class="nv-layers nv-map-only" role="radiogroup" aria-label="Layer"></div>
</div>
<div class="nv-stage">
  <canvas class="nv-map" tabindex="0" role="img"
    aria-label="Photo and disparity map. Arrow keys move the crosshair."></canvas>
  <canvas class="nv-cloud" tabindex="0" role="img" hidden
    aria-label="Point cloud. Arrow keys turn it, plus and minus zoom, zero resets."></canvas>
  <p class="nv-problem" role="alert" hidden></p>
</div>
<p class="nv-readout nv-map-only" aria-live="polite"></p>
<div class="nv-controls">
  <label class="nv-map-only">Photo / map <input type="range" data-set="split" min="0" max="1" step="0.01"></label>
  <label class="nv-map-only nv-needs-confidence">Least confidence
    <input type="range" data-set="least" min="0" max="0.95" step="0.05" value="0"></label>
  <label class="nv-cloud-only">Point size
    <input type="range" data-set="size" min="0.5" max="6" step="0.1" value="1.5"></label>
  <label class="nv-cloud-only nv-needs-confidence">Least confidence
    <input type="range" data-set="least" min="0" max="0.95" step="0.05" value="0"></label>
  <label class="nv-cloud-only">Focal length, px
    <input type="number" data-set="focal" min="1" step="any" inputmode="decimal"></label>
  <label class="nv-cloud-only">Baseline, m
    <input type="number" data-set="baseline" min="0" step="any" inputmode="decimal"></label>
  <label class="nv-cloud-only nv-check nv-needs-mask"><input type="checkbox" data-set="unseen"> Hidden pixels too</label>
  <label class="nv-cloud-only nv-check"><input type="checkbox" data-set="edges" checked> Without edges</label>
  <button type="button" class="nv-cloud-only" data-do="reset">Reset view</button>
</div>
<div class="nv-scale nv-map-only">
  <canvas class="nv-bar" width="256" height="1"></canvas>
  <span class="nv-low"></span><span class="nv-middle"></span><span class="nv-high"></span>
</div>
<ul class="nv-legend nv-map-only" hidden></ul>
<p class="nv-note nv-cloud-only"></p>
<div class="nv-files">
  <span>Save</span>
  <button type="button" data-save="pfm">PFM</button>
  <button type="button" data-save="png16">16-bit PNG</button>
  <button type="button" data-save="ply">PLY cloud</button>
  <button type="button" data-save="picture">Picture</button>
</div>`;

const EDGE_STEP = 2;  // px of disparity between neighbours, above which a point is left out

class Viewer {
  constructor(element) {
    this.root = element;
    element.classList.add('nv');
    element.innerHTML = MARKUP;
    const find = (selector) => element.querySelector(selector);
    this.find = find;
    this.mapView = new MapView({
      canvas: find('.nv-map'), bar: find('.nv-bar'), scale: find('.nv-scale'),
      low: find('.nv-low'), middle: find('.nv-middle'), high: find('.nv-high'),
      legend: find('.nv-legend'), readout: find('.nv-readout'),
    });
    this.cloudView = null;
    this.tab = 'map';
    this.least = 0;
    this.addLayers();
    this.listen();
  }

  addLayers() {
    this.find('.nv-layers').innerHTML = LAYERS.map(({ id, label }) =>
      `<label data-layer="${id}"><input type="radio" name="nv-layer" value="${id}"` +
      `${id === 'disparity' ? ' checked' : ''}><span>${label}</span></label>`).join('');
    this.find('.nv-legend').innerHTML = MASK_CLASSES.map(({ label, color }) =>
      `<li><i style="background: rgb(${color})"></i>${label}</li>`).join('') +
      '<li><i class="nv-hatched"></i>striped: filled in</li>';
  }

  all(selector) {
    return this.root.querySelectorAll(selector);
  }

  show(result) {
    this.result = result;
    this.calibration = result.calibration || guessedCalibration(result.width, result.height);
    for (const element of this.all('.nv-needs-confidence')) element.hidden = !result.confidence;
    for (const element of this.all('.nv-needs-mask')) element.hidden = !result.mask;
    this.find('[data-layer=confidence]').hidden = !result.confidence;
    this.find('[data-layer=mask]').hidden = !result.mask;
    this.find('[data-set=focal]').value = this.calibration.guessed ? '' : this.calibration.fx.toFixed(1);
    this.find('[data-set=baseline]').value = this.calibration.guessed ? '' : Number(this.calibration.baseline.toPrecision(5));
    this.find('[data-set=focal]').placeholder = `${Math.round(this.calibration.fx)} (guessed)`;
    this.find('[data-set=baseline]').placeholder = `${this.calibration.baseline} (guessed)`;
    this.stage = this.find('.nv-stage');
    this.stage.style.setProperty('--nv-aspect', `${result.width} / ${result.height}`);
    this.chooseLayer('disparity');
    this.mapView.show(result, this.calibration);
    this.mapView.setSplit(0.35);
    this.calibrationChanged(false);
  }

  chooseLayer(id) {
    this.find(`[data-layer=${id}] input`).checked = true;
    this.mapView.layer = id;
    this.mapView.paint();
  }

  calibrationChanged(keepCamera) {
    const { guessed } = this.calibration;
    const depth = this.find('[data-layer=depth]');
    depth.hidden = Boolean(guessed);
    if (guessed && this.mapView.layer === 'depth') this.chooseLayer('disparity');
    this.mapView.calibration = this.calibration;
    this.mapView.paint();
    this.find('.nv-note').textContent = guessed
      ? 'Focal length and baseline are guessed: shapes are plausible, sizes are not metres.'
      : 'Sizes are in metres, by the given focal length and baseline.';
    this.stale = true;
    if (this.tab === 'cloud') this.showCloud(keepCamera);
  }

  readCalibration() {
    const number = (name) => Number(this.find(`[data-set=${name}]`).value);
    const given = this.result.calibration;
    const guess = given || guessedCalibration(this.result.width, this.result.height);
    const fx = number('focal') > 0 ? number('focal') : guess.fx;
    const baseline = number('baseline') > 0 ? number('baseline') : guess.baseline;
    const known = Boolean(given) || (number('focal') > 0 && number('baseline') > 0);
    this.calibration = { ...guess, fx, fy: fx, baseline, guessed: !known };
    this.calibrationChanged(false);
  }

  cloud() {
    return pointCloud(this.result, this.calibration, {
      unseen: this.find('[data-set=unseen]').checked,
      minConfidence: this.least,
      edge: this.find('[data-set=edges]').checked ? EDGE_STEP : 0,
    });
  }

  showCloud(keepCamera = false) {
    const problem = this.find('.nv-problem');
    try {
      this.cloudView ||= new CloudView(this.find('.nv-cloud'));
      problem.hidden = true;
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      return;
    }
    if (!this.stale) return;
    this.stale = false;
    this.cloudView.show(this.cloud(), this.calibration, this.result, keepCamera);
    if (!keepCamera) this.cloudView.startSwing();
  }

  chooseTab(tab) {
    this.tab = tab;
    this.root.dataset.tab = tab;
    for (const button of this.all('[role=tab]')) {
      const chosen = button.dataset.tab === tab;
      button.setAttribute('aria-selected', chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
    this.find('.nv-map').hidden = tab !== 'map';
    this.find('.nv-cloud').hidden = tab !== 'cloud';
    this.find('.nv-problem').hidden = true;
    if (tab === 'cloud' && this.result) this.showCloud();
    else if (this.cloudView) this.cloudView.stopSwing();
    if (tab === 'map') this.mapView.draw();
  }

  async saveAs(kind) {
    if (!this.result) return;
    const { name } = this.result;
    if (kind === 'pfm') save(toPfm(this.result), `${name}_disparity.pfm`);
    if (kind === 'png16') save(await toPng16(this.result), `${name}_disparity.png`);
    if (kind === 'ply') {
      const unit = this.calibration.guessed ? 'guessed focal length and baseline' : 'metres';
      save(toPly(this.cloud(), `${unit}; +x right, +y down, +z forward`), `${name}_cloud.ply`);
    }
    if (kind === 'picture') {
      const blob = await new Promise((done) => this.mapView.picture.toBlob(done, 'image/png'));
      save(blob, `${name}_${this.mapView.layer}_vis.png`);
    }
  }

  listen() {
    const split = this.find('[data-set=split]');
    this.mapView.onSplit = (share) => { split.value = share; };
    split.addEventListener('input', () => this.mapView.setSplit(Number(split.value)));
    this.find('.nv-layers').addEventListener('change', (event) => this.chooseLayer(event.target.value));
    for (const button of this.all('[role=tab]')) {
      button.addEventListener('click', () => this.chooseTab(button.dataset.tab));
      button.addEventListener('keydown', (event) => {
        if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
        const other = button.dataset.tab === 'map' ? 'cloud' : 'map';
        this.chooseTab(other);
        this.find(`[data-tab=${other}][role=tab]`).focus();
      });
    }
    for (const slider of this.all('[data-set=least]'))
      slider.addEventListener('input', () => {
        this.least = Number(slider.value);
        for (const twin of this.all('[data-set=least]')) twin.value = slider.value;
        this.mapView.minConfidence = this.least;
        this.mapView.paint();
        this.cloudOptionsChanged();
      });
    this.find('[data-set=size]').addEventListener('input', (event) => {
      if (!this.cloudView) return;
      this.cloudView.pointSize = Number(event.target.value);
      this.cloudView.draw();
    });
    for (const name of ['unseen', 'edges'])
      this.find(`[data-set=${name}]`).addEventListener('change', () => this.cloudOptionsChanged());
    for (const name of ['focal', 'baseline'])
      this.find(`[data-set=${name}]`).addEventListener('change', () => this.result && this.readCalibration());
    this.find('[data-do=reset]').addEventListener('click', () => {
      if (!this.cloudView) return;
      this.cloudView.stopSwing();
      this.cloudView.reset();
    });
    for (const button of this.all('[data-save]'))
      button.addEventListener('click', () => this.saveAs(button.dataset.save));
    this.root.dataset.tab = 'map';
  }

  cloudOptionsChanged() {
    this.stale = true;
    if (this.tab === 'cloud' && this.result) this.showCloud(true);
  }
}

export function createViewer(element) {
  return new Viewer(element);
}
