// Asks for what each panel shows, again and again while somebody looks, and says when what is shown
// is old.
import {body, clock, el} from './elements.js';
import {HeatMap} from './heat_map.js';
import {showBudgets, showEvents, showFleet, showGates, showPools, showRollout, showWaiting} from './panels.js';
import {showTraffic} from './plot.js';

const FIRST_INTERVAL_MS = 10000;
const MOST_NAMES = 200;
const map = new HeatMap();
const away = document.getElementById('away');
let interval = FIRST_INTERVAL_MS;
let shownAt = 0;
let timer = 0;
let failure = '';

// What is asked, the panels that show it, and how.
const PANELS = [
  ['fleet', ['fleet'], (fleet, now) => {
    interval = fleet.interval_ms;
    showFleet(fleet, now);
  }],
  ['pools', ['pools'], showPools],
  ['nodes', ['nodes', 'waiting', 'gates'], (nodes, now) => {
    map.show(nodes);
    showWaiting(nodes.waiting, now);
    showGates(nodes.gates, now);
    suggest(nodes.names);
  }],
  ['traffic', ['traffic'], showTraffic],
  ['rollout', ['rollout'], showRollout],
  ['budgets', ['budgets'], showBudgets],
  ['events', ['events'], showEvents],
];

// The names that the search field offers: those that go on as what is typed.
let names = [];
function suggest(known) {
  names = known;
}
document.getElementById('subject').addEventListener('input', (event) => {
  const begin = event.target.value;
  const fitting = begin === '' ? [] : names.filter((name) => name.startsWith(begin)).slice(0, MOST_NAMES);
  document.getElementById('names').replaceChildren(...fitting.map((name) => el('option', {value: name})));
});

function mark(sections, message) {
  for (const id of sections) {
    const section = document.getElementById(id);
    section.querySelector('.error')?.remove();
    section.classList.toggle('stale', message !== '');
    if (message !== '') body(id).before(el('p', {class: 'error'}, message));
  }
}

async function ask([name, sections, show]) {
  const of = name === 'traffic' ? `?of=${encodeURIComponent(document.getElementById('class').value)}` : '';
  let answer;
  try {
    const response = await fetch(`api/${name}${of}`);
    const json = (response.headers.get('Content-Type') ?? '').startsWith('application/json');
    if (!json) throw new Error(await response.text());
    answer = await response.json();
  } catch (error) {
    failure = error instanceof TypeError ? 'spokectl dashboard does not answer: it has ended, or the way to it is cut.' : error.message;
    mark(sections, 'This is old.');
    return;
  }
  if (answer.error) {
    const gone = ['unavailable', 'aborted', 'deadline_exceeded'].includes(answer.error);
    if (gone) failure = `The server is away. ${answer.message}`;
    mark(sections, gone ? 'This is old: the server is away.' : answer.message);
    return;
  }
  mark(sections, '');
  show(answer.data, answer.at);
  shownAt = Math.max(shownAt, answer.at);
}

async function refresh() {
  clearTimeout(timer);
  failure = '';
  await Promise.all(PANELS.map(ask));
  const old = shownAt === 0 ? 'Nothing has been read yet.' : `What is shown is of ${clock(shownAt)}.`;
  const message = failure === '' ? '' : `${failure} ${old}`;
  // An alert is read aloud when its text changes.
  if (away.textContent !== message) away.textContent = message;
  away.hidden = message === '';
  document.getElementById('updated').textContent = shownAt === 0 ? '' : `as of ${clock(shownAt)}, every ${interval / 1000} s`;
  if (document.documentElement.dataset.ready !== 'yes') performance.mark('ready');
  document.documentElement.dataset.ready = 'yes';
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, interval);
}

document.getElementById('class').addEventListener('change', () => ask(PANELS.find(([name]) => name === 'traffic')));
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) refresh();
});
refresh();
