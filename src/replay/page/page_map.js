// SPDX-License-Identifier: Apache-2.0
// The address map: addresses run along rows, as text does. The upper part of a row is blocks, the
// bar below it the extents that back them. Vacant addresses are squeezed: there are terabytes.
'use strict';

const STATES = ['live', 'idle', 'pending', 'moving', 'vacant'];
const ROW = {height: 27, blocks: 17, extents: 5};
const VIEW = 600;  // the most height before the map scrolls

/** Gives each piece its place in its range and in the drawing. */
function layOut(ranges, squeezed) {
  for (const range of ranges) {
    let offset = 0, place = 0;
    range.cells = range.pieces.map(([state, bytes, stream, requested, blocks = 1, ...parts]) => {
      const length = STATES[state] === 'vacant' ? Math.min(bytes, squeezed) : bytes;
      const cell = {offset, place, bytes, length, state, stream, requested, blocks,
                    parts: parts.length ? parts : null, range};
      offset += bytes;
      place += length;
      return cell;
    });
    range.length = place;
  }
}

class AddressMap {
  constructor(map) {
    this.map = map;
    this.ranges = map.ranges;
    const backed = this.sum(range => range.pieces, piece => STATES[piece[0]] === 'vacant' ? 0
        : piece[1]);
    layOut(this.ranges, Math.max(MIB, backed / 2400));
    const extents = this.ranges.flatMap(range => range.extents);
    this.page = Math.min(...extents.map(([, bytes, , merged = 1]) => bytes / merged));
    this.total = this.ranges.reduce((sum, range) => sum + range.length, 0);
    this.rowBytes = 2 ** Math.max(20, Math.ceil(Math.log2(Math.max(1, this.total / 26))));
    this.selected = null;
    this.build();
  }

  sum(list, amount) {
    return this.ranges.reduce((all, range) => all +
        list(range).reduce((sum, item) => sum + amount(item), 0), 0);
  }

  build() {
    this.canvas = element('canvas');
    this.tall = element('div', {}, this.canvas);  // the canvas is no taller than the view
    this.scroller = element('div', {
      class: 'map', tabindex: 0, role: 'application',
      'aria-label': 'Address map. Arrow keys go from block to block, + and - zoom.',
    }, this.tall);
    this.scale = element('span');
    const zoom = (label, title, factor) => {
      const button = element('button', {type: 'button', title, 'aria-label': title}, label);
      button.addEventListener('click', () => this.zoom(factor));
      return button;
    };
    this.tools = element('div', {class: 'tools'}, zoom('−', 'more to a row', 2),
                         zoom('+', 'less to a row', 0.5), this.scale);
    this.host = element('div', {}, this.legend(), this.tools, this.scroller);
    this.scroller.addEventListener('scroll', () => this.paint());
    this.scroller.addEventListener('pointermove', event => this.point(event));
    this.scroller.addEventListener('pointerleave', () => this.select(null));
    this.scroller.addEventListener('blur', () => this.select(null));
    this.scroller.addEventListener('keydown', event => this.step(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.paint());
    drawToWidth(this.scroller, width => this.layRows(width));
  }

  legend() {
    const bytes = STATES.map(() => 0), blocks = STATES.map(() => 0);
    for (const cell of this.ranges.flatMap(range => range.cells)) {
      if (cell.parts) cell.parts.forEach((part, state) => { bytes[state] += part; });
      else bytes[cell.state] += cell.bytes;
      blocks[cell.state] += cell.blocks;
    }
    const entries = STATES.map((state, i) => bytes[i] === 0 ? null
        : key(`var(--${state})`, state, size(bytes[i]), plural(blocks[i], 'block')));
    const count = large => this.sum(range => range.extents, ([, all, , merged = 1]) =>
        (all / merged > this.page) === large ? merged : 0);
    return element('div', {class: 'legend'}, ...entries.filter(Boolean),
                   key('var(--extent)', 'extents of one page', number(count(false))),
                   key('var(--extent-large)', 'larger extents', number(count(true))),
                   ...(this.map.spare ? [key('transparent', 'spare', size(this.map.spare))] : []));
  }

  zoom(factor) {
    const rowBytes = this.rowBytes * factor;
    if (rowBytes < MIB / 4 || this.total / rowBytes > 20000 || rowBytes > 4 * this.total) return;
    this.rowBytes = rowBytes;
    this.layRows(this.scroller.clientWidth);
  }

  /** Rows of all ranges, each range under a line that names it. */
  layRows(width) {
    this.width = width;
    this.rows = [];
    for (const range of this.ranges) {
      this.rows.push({range, title: true});
      for (let begin = 0; begin < range.length; begin += this.rowBytes) {
        this.rows.push({range, begin});
      }
    }
    this.view = Math.min(VIEW, this.rows.length * ROW.height);
    this.scroller.style.height = `${this.view}px`;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = this.view * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.view}px`;
    this.tall.style.height = `${this.rows.length * ROW.height}px`;
    this.scale.textContent = `a row is ${size(this.rowBytes)}`;
    this.paint();
  }

  paint() {
    if (!this.rows) return;
    const pen = this.pen = this.canvas.getContext('2d');
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.view);
    this.colors = STATES.map(state => themed(`--${state}`));
    const scrolled = this.scroller.scrollTop;
    const first = Math.floor(scrolled / ROW.height);
    const last = Math.min(this.rows.length, Math.ceil((scrolled + this.view) / ROW.height));
    for (let i = first; i < last; ++i) {
      const y = i * ROW.height - scrolled;
      if (this.rows[i].title) this.paintTitle(this.rows[i].range, y);
      else this.paintRow(this.rows[i], y);
    }
  }

  paintTitle(range, y) {
    const {pen} = this;
    pen.fillStyle = themed('--muted');
    pen.font = '12px system-ui, sans-serif';
    pen.fillText(`${range.begin}: ${size(range.size)} of addresses`, 0, y + 18);
  }

  /** From pixel to pixel, so that neighbors narrower than one leave no light between them. */
  fill(color, x, y, width, height) {
    const {pen} = this;
    const ratio = window.devicePixelRatio || 1;
    const snap = at => Math.floor(at * ratio) / ratio;
    const gap = width > 3 ? 1 : 0;
    pen.fillStyle = color;
    pen.fillRect(snap(x), y, Math.max(1 / ratio, snap(x + width) - snap(x) - gap), height);
  }

  /** Calls draw(item, x, width) for what of `items` lies in the row. */
  each(items, row, begin, end, draw) {
    const stop = row.begin + this.rowBytes;
    const scale = this.width / this.rowBytes;
    for (let i = lastAtMost(items, row.begin, begin); i < items.length; ++i) {
      const from = Math.max(begin(items[i]), row.begin), to = Math.min(end(items[i]), stop);
      if (from >= stop) break;
      if (to > from) draw(items[i], (from - row.begin) * scale, (to - from) * scale);
    }
  }

  paintRow(row, y) {
    const {cells, extents} = row.range;
    const stop = cell => cell.place + cell.length;
    this.each(cells, row, cell => cell.place, stop, (cell, x, width) => {
      let at = x;
      for (const [state, share] of this.shares(cell)) {
        const thin = STATES[state] === 'vacant' ? 6 : 0;
        this.fill(this.colors[state], at, y + thin, share * width, ROW.blocks - 2 * thin);
        at += share * width;
      }
      if (cell !== this.selected) return;
      this.pen.strokeStyle = themed('--text');
      this.pen.lineWidth = 2;
      this.pen.strokeRect(x, y + 1, Math.max(2, width), ROW.blocks - 2);
    });
    const place = extent => this.placeOf(row.range, extent[0]);
    const end = extent => this.placeOf(row.range, extent[0] + extent[1]);
    const [small, large] = [themed('--extent'), themed('--extent-large')];
    this.each(extents, row, place, end, (extent, x, width) => {
      const color = extent[1] / (extent[3] || 1) > this.page ? large : small;
      this.fill(color, x, y + ROW.blocks + 1, width, ROW.extents);
    });
  }

  shares(cell) {
    if (!cell.parts) return [[cell.state, 1]];
    return cell.parts.map((part, state) => [state, part / cell.bytes]).filter(part => part[1] > 0);
  }

  placeOf(range, offset) {
    const cell = range.cells[lastAtMost(range.cells, offset, c => c.offset)];
    return cell.place + Math.min(offset - cell.offset, cell.length);
  }

  point(event) {
    const box = this.scroller.getBoundingClientRect();
    const at = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW.height);
    const row = this.rows[at];
    const place = row && !row.title &&
        row.begin + (event.clientX - box.left) / this.width * this.rowBytes;
    if (!row || row.title || place > row.range.length) return this.select(null);
    const {cells} = row.range;
    this.select(cells[lastAtMost(cells, place, cell => cell.place)], event, place);
  }

  step(event) {
    if (event.key === '+' || event.key === '-') return this.zoom(event.key === '+' ? 0.5 : 2);
    const all = this.ranges.flatMap(range => range.cells);
    const now = Math.max(0, all.indexOf(this.selected));
    const {range, place} = all[now];
    const beside = rows => all.indexOf(range.cells[lastAtMost(range.cells,
        Math.max(0, place + rows * this.rowBytes), cell => cell.place)]);
    const to = {ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: all.length - 1,
                ArrowUp: beside(-1), ArrowDown: beside(1)};
    if (!(event.key in to)) return;
    event.preventDefault();
    const cell = all[Math.max(0, Math.min(all.length - 1, to[event.key]))];
    const row = this.rows.findIndex(r => r.range === cell.range && !r.title &&
        cell.place < r.begin + this.rowBytes);
    const y = row * ROW.height;
    const {scrollTop} = this.scroller;
    if (y < scrollTop || y + ROW.height > scrollTop + this.view) {
      this.scroller.scrollTop = y - this.view / 2;
    }
    const box = this.scroller.getBoundingClientRect();
    const x = (cell.place - this.rows[row].begin) / this.rowBytes * this.width;
    const spot = {clientX: box.left + x, clientY: box.top + y - this.scroller.scrollTop + 8};
    this.select(cell, spot, cell.place, true);
  }

  select(cell, spot, place, spoken = false) {
    if (cell !== this.selected) {
      this.selected = cell;
      this.paint();
    }
    if (!cell) return tip.hide();
    tip.show(spot.clientX, spot.clientY, this.title(cell), this.facts(cell, place), spoken);
  }

  title(cell) {
    if (cell.blocks > 1) return `${number(cell.blocks)} blocks, ${size(cell.bytes)}`;
    return `${STATES[cell.state]}, ${size(cell.bytes)}`;
  }

  facts(cell, place) {
    const facts = [];
    if (cell.parts) {
      cell.parts.forEach((part, i) => { if (part) facts.push([STATES[i], size(part)]); });
    }
    if (cell.requested) facts.push(['requested', size(cell.requested)]);
    const used = STATES[cell.state] !== 'vacant';
    if (used) facts.push(['stream', this.map.streams[cell.stream]]);
    facts.push(['address', `${cell.range.begin} + ${size(cell.offset)}`]);
    const offset = cell.offset + Math.min(cell.bytes, Math.max(0, place - cell.place));
    const {extents} = cell.range;
    const extent = extents[lastAtMost(extents, offset, e => e[0])];
    if (used && extent && offset >= extent[0] && offset < extent[0] + extent[1]) {
      const [, bytes, id, merged = 1] = extent;
      facts.push(['on', merged > 1 ? `${number(merged)} extents, ${size(bytes)}`
                                   : `extent ${id}, ${size(bytes)}`]);
    }
    return facts;
  }
}
