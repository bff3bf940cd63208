// SPDX-License-Identifier: Apache-2.0
// Bytes over a trace's time: what was asked for, as an area, and what each allocator held for it.
'use strict';

const PLOT = {left: 74, right: 14, top: 12, height: 250, bottom: 28};

/** Round steps for an axis up to `highest`. */
function ticks(highest, count) {
  const raw = highest / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw);
  const marks = [];
  for (let mark = 0; mark <= highest; mark += step) marks.push(mark);
  return marks;
}

class Chart {
  constructor(picture, colors, passes) {
    this.picture = picture;
    this.colors = colors;
    this.pass = passes[0];
    this.at = 0;
    this.host = element('div');
    drawToWidth(this.host, width => this.draw(width));
  }

  lines() { return this.picture.reserved.filter(line => line.pass === this.pass); }

  showPass(pass) {
    this.pass = pass;
    this.draw(this.width);
  }

  draw(width) {
    const {left, right, top, height, bottom} = PLOT;
    this.width = width;
    const {picture} = this;
    const highest = Math.max(1, ...picture.requested_kib,
                             ...this.lines().flatMap(line => line.kib));
    this.x = us => left + (width - left - right) * us / Math.max(1, picture.duration_us);
    this.y = kib => top + height * (1 - kib / (highest * 1.04));
    this.cursor = shape('g');
    this.svg = shape('svg', {
      viewBox: `0 0 ${width} ${top + height + bottom}`, height: top + height + bottom, tabindex: 0,
      role: 'img', 'aria-label': `Bytes over time of ${picture.trace}. Arrow keys read values.`,
    }, ...this.axes(highest), this.area(), ...this.lines().map(line => this.line(line)),
    ...this.peak(), this.cursor);
    this.svg.addEventListener('pointermove', event => this.point(event));
    this.svg.addEventListener('pointerleave', () => this.leave());
    this.svg.addEventListener('blur', () => this.leave());
    this.svg.addEventListener('keydown', event => this.step(event));
    this.host.replaceChildren(this.svg);
  }

  axes(highest) {
    const parts = [];
    for (const mib of ticks(highest / 1024, 5)) {
      const y = this.y(mib * 1024);
      parts.push(shape('path', {class: 'grid', d: `M${PLOT.left} ${y}H${this.width - PLOT.right}`}),
                 shape('text', {x: PLOT.left - 8, y: y + 4, 'text-anchor': 'end'},
                       `${number(mib, mib % 1 ? 1 : 0)}${mib ? '' : ' MiB'}`));
    }
    const inSeconds = this.picture.duration_us >= 1e6;
    const unit = inSeconds ? 1e6 : 1e3;
    for (const mark of ticks(Math.max(1e-3, this.picture.duration_us / unit), 8)) {
      parts.push(shape('text', {x: this.x(mark * unit), y: PLOT.top + PLOT.height + 19,
                                'text-anchor': 'middle'},
                       `${number(mark, mark % 1 ? 2 : 0)}${mark ? '' : inSeconds ? ' s' : ' ms'}`));
    }
    return parts;
  }

  /** The outline of slices as steps. */
  steps(kib) {
    const end = Math.min(this.picture.duration_us, kib.length * this.picture.slice_us);
    let path = '';
    kib.forEach((value, i) => {
      const x = this.x(i * this.picture.slice_us).toFixed(1);
      path += `${i ? 'H' + x + 'V' : 'M' + x + ' '}${this.y(value).toFixed(1)}`;
    });
    return `${path}H${this.x(end).toFixed(1)}`;
  }

  area() {
    const kib = this.picture.requested_kib;
    if (kib.length === 0) return shape('g');
    const outline = this.steps(kib);
    const base = this.y(0);
    return shape('g', {}, shape('path', {d: `${outline}V${base}H${this.x(0)}Z`,
                                         fill: 'var(--requested-fill)'}),
                 shape('path', {d: outline, fill: 'none', stroke: 'var(--requested)'}));
  }

  line({allocator, kib}) {
    return shape('path', {d: kib.length ? this.steps(kib) : '', fill: 'none', 'stroke-width': 2,
                          stroke: this.colors.get(allocator), 'stroke-linejoin': 'round'});
  }

  peak() {
    const {peak} = this.picture;
    if (!peak.operation) return [];
    const x = this.x(peak.time_us), y = this.y(peak.bytes / 1024);
    return [
      shape('path', {class: 'axis', d: `M${x} ${PLOT.top}V${PLOT.top + PLOT.height}`,
                     'stroke-dasharray': '3 4'}),
      shape('circle', {cx: x, cy: y, r: 4, fill: 'var(--card)', stroke: 'var(--text)',
                       'stroke-width': 1.5}),
    ];
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - PLOT.left) /
        (this.width - PLOT.left - PLOT.right);
    const us = share * this.picture.duration_us;
    this.read(Math.floor(us / this.picture.slice_us), event.clientX, event.clientY, false);
  }

  step(event) {
    const last = this.picture.requested_kib.length - 1;
    const stride = event.shiftKey ? 50 : 1;
    const to = {ArrowLeft: this.at - stride, ArrowRight: this.at + stride, Home: 0, End: last};
    if (!(event.key in to)) return;
    event.preventDefault();
    const box = this.svg.getBoundingClientRect();
    const at = Math.max(0, Math.min(last, to[event.key]));
    this.read(at, box.left + this.x(at * this.picture.slice_us), box.top + PLOT.top + 40, true);
  }

  read(at, x, y, spoken) {
    const requested = this.picture.requested_kib;
    if (requested.length === 0) return;
    this.at = Math.max(0, Math.min(requested.length - 1, at));
    const asked = requested[this.at];
    const facts = [['requested', mebibytes(asked * 1024)]];
    const middle = this.x((this.at + 0.5) * this.picture.slice_us);
    const marks = [shape('path', {class: 'axis', d: `M${middle} ${PLOT.top}v${PLOT.height}`})];
    for (const {allocator, kib} of this.lines()) {
      const held = kib[this.at];
      const over = `${held >= asked ? '+' : ''}${mebibytes((held - asked) * 1024)}`;
      facts.push([allocator, held === undefined ? 'ran out of memory'
                                                : `${mebibytes(held * 1024)} (${over})`]);
      if (held === undefined) continue;
      marks.push(shape('circle', {cx: middle, cy: this.y(held), r: 3.5,
                                  fill: this.colors.get(allocator)}));
    }
    this.cursor.replaceChildren(...marks);
    tip.show(x, y, `at ${seconds(this.at * this.picture.slice_us)}`, facts, spoken);
  }

  leave() {
    this.cursor.replaceChildren();
    tip.hide();
  }
}
