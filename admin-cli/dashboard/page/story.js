// The story of an address, a node or a pod, as `spokectl explain` tells it, in a dialog.
import {ago, el, replace, table, until} from './elements.js';

const dialog = document.getElementById('story');
const content = dialog.querySelector('.body');
let asked = 0;

function milliseconds(us) {
  return (us / 1000).toFixed(3);
}

function add(trace, now) {
  const end = trace.error ? el('p', {class: 'bad'}, `failed: ${trace.error}`) : el('p', {class: 'good'}, 'succeeded');
  return [el('h3', {}, `ADD of ${trace.pod}, ${trace.interface}, on ${trace.node}, ${ago(trace.since, now)}`), end,
    el('p', {class: 'faint'}, `${trace.addresses.join(', ')} trace ${trace.trace_id}`),
    table([['Step'], ['At (ms)', true], ['Took (ms)', true]],
      trace.steps.map((step) => [step.name, milliseconds(step.begin_us), milliseconds(step.took_us)]))];
}

function tell(story, now) {
  const kinds = {ip: 'Address', node: 'Node', pod: 'Pod'};
  document.getElementById('story-title').textContent = `${kinds[story.kind]} ${story.name}`;
  replace(content, el('p', {class: 'summary'}, story.summary),
    story.eta === 0 ? null : el('p', {}, `Expected to be well ${until(story.eta, now)}.`),
    el('ul', {class: 'details'}, ...story.details.map((detail) => el('li', {}, detail))),
    ...story.nodes.map((name) => el('p', {}, 'On node ', el('button', {class: 'link', click: () => explain(name)}, name))),
    ...story.adds.flatMap((trace) => add(trace, now)),
    ...story.without_adds.map((why) => el('p', {class: 'faint'}, `No steps of an ADD: ${why}`)));
}

export async function explain(name) {
  const mine = ++asked;
  document.getElementById('story-title').textContent = name;
  replace(content, el('p', {class: 'faint'}, 'asking the server…'));
  if (!dialog.open) dialog.showModal();
  try {
    const response = await fetch(`api/story?of=${encodeURIComponent(name)}`);
    const answer = await response.json();
    if (mine !== asked) return;
    if (answer.error) replace(content, el('p', {class: 'bad'}, answer.message));
    else tell(answer.data, answer.at);
  } catch {
    if (mine === asked) replace(content, el('p', {class: 'bad'}, 'spokectl dashboard does not answer.'));
  }
}

document.getElementById('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const name = document.getElementById('subject').value.trim();
  if (name !== '') explain(name);
});

document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || dialog.open || event.target.matches('input, select')) return;
  event.preventDefault();
  document.getElementById('subject').focus();
});
