// SPDX-License-Identifier: Apache-2.0
// What the parts of the page share. All text goes in as text, never as markup.
'use strict';

const MIB = 1048576;
const SVG = 'http://www.w3.org/2000/svg';

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const number = (value, digits = 0) => value.toLocaleString('en-US',
    {minimumFractionDigits: digits, maximumFractionDigits: digits});
const mebibytes = bytes => `${number(bytes / MIB, 1)} MiB`;

/** A size for reading: exact where it is small, else with one decimal. */
function size(bytes) {
  if (bytes < 10240) return `${number(bytes)} B`;
  if (bytes < MIB) return `${number(bytes / 1024, 1)} KiB`;
  const [amount, unit] = bytes < 10240 * MIB && bytes % (1024 * MIB)
      ? [bytes / MIB, 'MiB'] : [bytes / 1024 / MIB, 'GiB'];
  return `${number(amount, amount % 1 ? 1 : 0)} ${unit}`;
}

const seconds = us => us < 1e6 ? `${number(us / 1e3, 2)} ms` : `${number(us / 1e6, 3)} s`;
const percent = share => `${number(share * 100, share < 0.1 ? 2 : 1)} %`;
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
const allocatorTitle = name => name === 'segment_cache' ? `${name} (stand-in)` : name;
const colorOf = index => `var(--a${index % 6})`;
const themed = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The last index whose key(item) is at most `value`; 0 where none is. */
function lastAtMost(items, value, key) {
  let low = 0, high = items.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (key(items[middle]) <= value) low = middle; else high = middle;
  }
  return low;
}

/** One box beside the pointer for the whole page; the same words go to those who listen. */
const tip = {
  box: element('div', {id: 'tip', hidden: ''}),
  voice: element('div', {class: 'unseen', 'aria-live': 'polite'}),

  show(x, y, title, facts, spoken) {
    const list = element('dl');
    for (const [name, value] of facts) {
      list.append(element('dt', {}, name), element('dd', {}, value));
    }
    this.box.replaceChildren(element('strong', {}, title), list);
    this.box.hidden = false;
    const {width, height} = this.box.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
    const top = y + 16 + height > innerHeight ? y - 16 - height : y + 16;
    this.box.style.left = `${Math.max(4, left)}px`;
    this.box.style.top = `${Math.max(4, top)}px`;
    if (!spoken) return;
    this.voice.textContent = [title, ...facts.map(fact => fact.join(' '))].join(', ');
  },
  hide() { this.box.hidden = true; },
};

/** A legend's entry. */
function key(color, label, value, note = '') {
  return element('span', {}, element('i', {style: `background:${color}`}), label,
                 element('b', {}, value), element('span', {}, note));
}

/** Calls draw(width) now and whenever the width of `host` changes. */
function drawToWidth(host, draw) {
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(host.clientWidth);
    if (width > 0 && width !== drawn) draw(drawn = width);
  }).observe(host);
}
