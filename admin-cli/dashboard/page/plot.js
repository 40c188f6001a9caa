// The plot of the namespaces with most traffic.
import {bits, body, clock, el, replace, svg, swatch, table} from './elements.js';

const WIDTH = 1000;
const HEIGHT = 200;
const FOOT = 18;
const HEAD = 8;

function path(times, rates, most) {
  const [first, last] = [times[0], times[times.length - 1]];
  return rates.map((rate, i) => {
    const x = last === first ? WIDTH : WIDTH * (times[i] - first) / (last - first);
    const y = HEIGHT - FOOT - (HEIGHT - FOOT - HEAD) * rate / most;
    return `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
  }).join('');
}

// Returns the classes a person may choose, with the chosen one among them.
function showClasses(classes) {
  const choice = document.getElementById('class');
  const wanted = [...new Set(['external', 'all', ...classes, choice.value])];
  if (wanted.join() === [...choice.options].map((option) => option.value).join()) return;
  const chosen = choice.value;
  choice.replaceChildren(...wanted.map((name) => el('option', {value: name}, name)));
  choice.value = chosen;
}

export function showTraffic(traffic) {
  showClasses(traffic.classes);
  const {times, lines} = traffic;
  if (times.length < 2 || lines.length === 0) {
    replace(body('traffic'), el('p', {class: 'faint'}, times.length < 2 ?
      'The server takes a reading in thirty seconds; the plot begins with its third.' : 'There was no such traffic.'));
    return;
  }
  const most = Math.max(1, ...lines.flatMap((line) => line.rates));
  const middle = HEIGHT - FOOT - (HEIGHT - FOOT - HEAD) / 2;
  const picture = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img',
    'aria-label': `Traffic of ${lines.length} namespaces from ${clock(times[0])} to ${clock(times[times.length - 1])}, at most ${bits(most)}`},
  ...[HEAD, middle, HEIGHT - FOOT].map((y) => svg('line', {x1: 0, x2: WIDTH, y1: y, y2: y})),
  ...lines.map((line, i) => svg('path', {d: path(times, line.rates, most), class: `l${i}`})));
  const key = table([['Namespace'], ['Now', true], ['Most', true]], lines.map((line, i) =>
    [el('span', {}, swatch(`l${i}`), line.name), bits(line.rates[line.rates.length - 1]), bits(Math.max(...line.rates))]));
  replace(body('traffic'), el('div', {class: 'plot'},
    el('div', {}, el('p', {class: 'faint'}, `up to ${bits(most)}`), picture,
      el('div', {class: 'of heading faint'}, el('span', {}, `${clock(times[0])} to ${clock(times[times.length - 1])}`))), key));
}
