// SPDX-License-Identifier: Apache-2.0
// Puts the page together from the report's data.
'use strict';

const report = JSON.parse(document.getElementById('report').textContent);
const allocators = [...new Set(report.rows.map(row => row.allocator))];
const colors = new Map(allocators.map((name, i) => [name, colorOf(i)]));
const shortTrace = names => {
  const [first, ...others] = names.split('+');
  const name = first.replace(/\.csv(\.gz)?$/, '');
  return others.length ? `${name} + ${others.length} more` : name;
};
const sectionId = index => `trace-${index}`;

/** A line for each trace, a dot for each allocator: how near to 1 is what it held. */
function overview(width) {
  const left = Math.min(220, width / 3), right = 26, rowHeight = 30, top = 22;
  const height = top + rowHeight * report.pictures.length;
  const x = utilization => left + (width - left - right) * utilization;
  const parts = [0, 0.25, 0.5, 0.75, 1].flatMap(mark => [
    shape('path', {class: 'grid', d: `M${x(mark)} ${top}V${height}`}),
    shape('text', {x: x(mark), y: 12, 'text-anchor': 'middle'}, `${mark}`)]);
  report.pictures.forEach(({trace}, i) => {
    const y = top + rowHeight * (i + 0.5);
    const rows = report.rows.filter(row => row.trace === trace && row.pass === 1);
    const title = shape('text', {x: 0, y: y + 4, class: 'strong'}, shortTrace(trace));
    parts.push(shape('a', {href: `#${sectionId(i)}`}, title));
    const done = rows.filter(row => row.completed);
    const ends = done.map(row => x(row.utilization));
    if (ends.length) {
      const d = `M${Math.min(...ends)} ${y}H${Math.max(...ends)}`;
      parts.push(shape('path', {class: 'axis', d}));
    }
    for (const row of [...done].reverse()) {
      parts.push(shape('circle', {cx: x(row.utilization), cy: y, r: 6, stroke: 'var(--card)',
                                  'stroke-width': 1.5, fill: colors.get(row.allocator)},
                       shape('title', {}, `${row.allocator}: ${number(row.utilization, 4)}`)));
    }
  });
  const label = 'Utilization by trace and allocator; the table has the figures';
  return shape('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img',
                       'aria-label': label}, ...parts);
}

function tableOfRows() {
  const heads = ['trace', 'allocator', 'pass', 'requested peak', 'reserved peak', 'utilization',
                 'driver calls', 'driver time', 'of the trace', 'ns/op', 'completed'];
  const body = element('tbody');
  report.rows.forEach((row, i) => {
    const first = i === 0 || report.rows[i - 1].trace !== row.trace;
    const index = report.pictures.findIndex(picture => picture.trace === row.trace);
    const calls = Object.values(row.driver_calls).reduce((sum, count) => sum + count, 0);
    const name = !first || index < 0 ? '' : element('a', {href: `#${sectionId(index)}`},
                                                    shortTrace(row.trace));
    const timed = row.driver_time_us !== null;
    const share = timed && row.trace_duration_us > 0
        ? percent(row.driver_time_us / row.trace_duration_us) : '';
    const cells = [
      name, element('span', {style: `color:${colors.get(row.allocator)}`},
                    allocatorTitle(row.allocator)),
      number(row.pass), mebibytes(row.requested_peak_bytes), mebibytes(row.reserved_peak_bytes),
      element('b', {}, number(row.utilization, 4)), number(calls),
      timed ? `${number(row.driver_time_us / 1e3, 2)} ms` : '-', share, number(row.ns_per_operation)];
    const line = element('tr', first ? {class: 'first'} : {},
                         ...cells.map(cell => element('td', {}, cell)));
    line.append(row.completed ? element('td', {}, 'yes')
                              : element('td', {class: 'out'}, `out of memory after ${
                                  plural(row.operations, 'event')}`));
    body.append(line);
  });
  const head = element('tr', {}, ...heads.map(title => element('th', {scope: 'col'}, title)));
  return element('div', {class: 'wide'},
                 element('table', {}, element('thead', {}, head), body));
}

function passButtons(chart, passes) {
  const buttons = passes.map(pass => {
    const button = element('button', {type: 'button', 'aria-pressed': pass === chart.pass},
                           `pass ${pass}`);
    button.addEventListener('click', () => {
      chart.showPass(pass);
      buttons.forEach(b => b.setAttribute('aria-pressed', b === button));
    });
    return button;
  });
  return element('div', {class: 'tools'}, ...buttons);
}

function section(picture, index) {
  const rows = report.rows.filter(row => row.trace === picture.trace && row.pass === 1);
  const passes = [...new Set(picture.reserved.map(line => line.pass))];
  const chart = new Chart(picture, colors, passes);
  const legend = element('div', {class: 'legend'},
                         key('var(--requested)', 'requested', mebibytes(picture.peak.bytes)),
                         ...rows.map(row => key(colors.get(row.allocator),
                                                `reserved by ${allocatorTitle(row.allocator)}`,
                                                mebibytes(row.reserved_peak_bytes),
                                                row.completed ? '' : 'ran out of memory')));
  const made = element('section', {id: sectionId(index)}, element('h2', {}, picture.trace),
                       element('p', {}, `${plural(picture.events, 'event')} in ${
                           seconds(picture.duration_us)}. The requested peak, ${
                           mebibytes(picture.peak.bytes)}, is reached by event ${
                           number(picture.peak.operation)} at ${seconds(picture.peak.time_us)}.`),
                       legend);
  if (passes.length > 1) made.append(passButtons(chart, passes));
  made.append(chart.host);
  if (picture.map) {
    made.append(element('h3', {}, 'Addresses of bursar at the requested peak'),
                element('p', {}, 'Blocks above, the extents under them below. Vacant addresses '
                        + 'are squeezed.'), new AddressMap(picture.map).host);
  }
  return made;
}

const dots = element('div');
drawToWidth(dots, width => dots.replaceChildren(overview(width)));
document.querySelector('main').append(
    element('section', {}, element('h2', {}, 'Utilization'),
            element('p', {}, 'Most bytes requested / most bytes of device memory held, first pass. '
                    + '1 is the best there can be.'),
            element('div', {class: 'legend'}, ...allocators.map(
                name => key(colors.get(name), allocatorTitle(name), ''))), dots),
    element('section', {}, element('h2', {}, 'Rows'), tableOfRows()),
    ...report.pictures.map(section));
document.body.append(tip.box, tip.voice);
