// Elements of the page, and texts of numbers and times. Names of pods, nodes and the like come from
// elsewhere: they become text nodes here, and nothing on the page takes a text for HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'click') element.addEventListener('click', value);
    else if (name === 'key') element.dataset.key = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== ''));
  return element;
}

// Makes an HTML element. A child is an element or a text; `click` is a function, and `key` names an
// element that keeps the focus when replace() makes it anew.
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Puts children in the place of those of `parent`.
export function replace(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...children.filter((child) => child !== null));
  if (focused === undefined) return;
  for (const element of parent.querySelectorAll('[data-key]')) {
    if (element.dataset.key === focused) element.focus({preventScroll: true});
  }
}

export function body(id) {
  return document.querySelector(`#${id} .body`);
}

// Makes a table. Columns are [title, whether it holds numbers]; cells are elements or texts.
export function table(columns, rows) {
  return el('table', {},
    el('thead', {}, el('tr', {}, ...columns.map(([title, number]) =>
      el('th', {scope: 'col', class: number ? 'number' : 'text'}, title)))),
    el('tbody', {}, ...rows.map((row) => el('tr', {}, ...row.map((cell, i) =>
      el('td', {class: columns[i][1] ? 'number' : 'text'}, cell))))));
}

export function swatch(name) {
  return el('span', {class: `swatch ${name}`, 'aria-hidden': 'true'});
}

export function count(number) {
  return number < 1e12 ? number.toLocaleString('en-US') : number.toExponential(1).replace('e+', 'e');
}

export function bits(rate) {
  const units = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'];
  let i = 0;
  while (rate >= 1000 && i + 1 < units.length) {
    rate /= 1000;
    ++i;
  }
  return `${i === 0 || rate >= 100 ? Math.round(rate) : rate.toPrecision(3)} ${units[i]}`;
}

export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86400)}d`;
}

export function ago(ms, now) {
  return ms === 0 ? 'never' : `${span(now - ms)} ago`;
}

// Tells when something is expected; `now` is the server's time as far as it is known.
export function until(ms, now) {
  if (ms === 0) return 'unknown';
  return ms <= now ? 'now' : `in ${span(ms - now)}`;
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString('en-GB');
}
