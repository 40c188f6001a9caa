// The panels that are lists, tables and bars. Each takes what api/NAME answers.
import {ago, bits, body, clock, count, el, replace, span, svg, swatch, table, until} from './elements.js';
import {explain} from './story.js';

const STATES = [['in_use', 'in-use', 'in use'], ['available', 'available', 'available on nodes'],
  ['cooldown', 'cooldown', 'in cooldown'], ['moving', 'moving', 'attaching or detaching'],
  ['quarantined', 'quarantined', 'in quarantine']];

function tile(title, value, note, tone = '') {
  return el('div', {}, el('dt', {}, title), el('dd', {class: tone}, el('b', {}, value)),
    el('dd', {class: 'faint'}, note));
}

function familyTile(name, counts) {
  const tone = counts.free === 0 ? 'bad' : '';
  return tile(`${name} free`, count(counts.free), `${count(counts.in_use)} in use of ${count(counts.usable)}`, tone);
}

function problems(fleet) {
  const all = [...fleet.problems];
  if (fleet.releases_frozen) all.push(`releases are frozen: ${fleet.releases_frozen}`);
  if (fleet.recovery) all.push(`recovery, ${fleet.recovery}: ${fleet.recovery_reason}`);
  return all;
}

export function showFleet(fleet, now) {
  const away = fleet.nodes - fleet.nodes_connected;
  const found = problems(fleet);
  const audit = fleet.last_audit === 0 ? 'none has run yet' : ago(fleet.last_audit, now);
  document.getElementById('server').textContent =
    `${fleet.server} · version ${fleet.version}, up ${span(now - fleet.started)}, store ${fleet.store}, cloud ${fleet.cloud}`;
  replace(body('fleet'),
    el('dl', {class: 'tiles'},
      tile('State', found.length === 0 ? 'well' : `${found.length} problem${found.length > 1 ? 's' : ''}`,
        found.length === 0 ? 'no problems' : 'see below', found.length === 0 ? 'good' : 'bad'),
      tile('Nodes connected', count(fleet.nodes_connected), `of ${count(fleet.nodes)}, ${count(away)} away`, away > 0 ? 'warn' : ''),
      fleet.ipv4 ? familyTile('IPv4', fleet.ipv4) : null,
      fleet.ipv6 ? familyTile('IPv6', fleet.ipv6) : null,
      tile('Policy', `${fleet.policy_version}`, 'version'),
      tile('Audit', `${fleet.audit_differences}`, `differences${fleet.audit_cloud_error ? ' without the cloud' : ''}; ${audit}`,
        fleet.audit_differences > 0 ? 'bad' : fleet.audit_cloud_error ? 'warn' : '')),
    el('ul', {class: 'problems'}, ...found.map((problem) => el('li', {}, problem))));
}

function bar(pool) {
  const counts = {...pool, moving: pool.attaching + pool.detaching};
  const picture = svg('svg', {viewBox: '0 0 1000 10', preserveAspectRatio: 'none', role: 'img'});
  const told = [`${count(pool.free)} free`];
  let x = 0;
  for (const [key, name, words] of STATES) {
    if (counts[key] === 0) continue;
    // A state that is there is seen, however large the pool.
    const width = Math.max(2, 1000 * counts[key] / Math.max(1, pool.usable));
    picture.append(svg('rect', {x, y: 0, width, height: 10, class: name}));
    x += width;
    told.push(`${count(counts[key])} ${words}`);
  }
  picture.setAttribute('aria-label', told.join(', '));
  picture.append(svg('title', {}, told.join(', ')));
  return el('div', {class: 'bar'},
    el('div', {class: 'of'}, el('span', {}, pool.name, ' ', el('span', {class: 'faint'}, pool.cidr)),
      el('span', {class: pool.free === 0 ? 'bad' : 'faint'}, `${count(pool.free)} free of ${count(pool.usable)}`)),
    picture);
}

// The families are apart: pods of two families have an address of each.
export function showPools(pools) {
  const parts = [];
  for (const family of [4, 6]) {
    const of = pools.filter((pool) => pool.family === family);
    if (of.length > 0) parts.push(el('p', {class: 'family'}, `IPv${family}`), ...of.map(bar));
  }
  if (parts.length === 0) parts.push(el('p', {class: 'faint'}, 'There are no pools.'));
  replace(body('pools'), ...parts, el('ul', {class: 'keys'},
    ...STATES.map(([, name, words]) => el('li', {}, swatch(name), words)), el('li', {}, swatch('free'), 'free')));
}

function subject(name, panel) {
  return el('button', {class: 'link', key: `${panel} ${name}`, click: () => explain(name)}, name);
}

export function showWaiting(waiting, now) {
  const {total, pods, nodes} = waiting;
  if (total === 0) {
    replace(body('waiting'), el('p', {class: 'good'}, 'No pod waits for an address, and no node is short of them.'));
    return;
  }
  replace(body('waiting'),
    el('p', {class: pods > 0 ? 'bad' : 'warn'}, `Pods that wait for an address: ${count(pods)}. Nodes that are short of addresses ` +
      `or unfit: ${count(total)}${nodes.length < total ? `, of which ${nodes.length} are listed` : ''}.`),
    table([['Node'], ['Pods', true], ['Why'], ['Expected', true]],
      nodes.map((node) => [subject(node.node, 'waiting'), count(node.pods), node.why, until(node.eta, now)])));
}

export function showGates(gates, now) {
  if (gates.length === 0) {
    replace(body('gates'), el('p', {class: 'faint'}, 'No change of a node waits for the cloud.'));
    return;
  }
  replace(body('gates'), table([['Waits for'], ['Lane'], ['Nodes', true], ['First', true], ['Last', true]],
    gates.map((gate) => [gate.waits_for, gate.lane, count(gate.nodes), until(gate.first_eta, now), until(gate.last_eta, now)])));
}

function meter(part, whole, name) {
  const share = whole === 0 ? 0 : Math.min(1, part / whole);
  return el('div', {class: 'bar'}, svg('svg', {viewBox: '0 0 1000 10', preserveAspectRatio: 'none', role: 'img',
    'aria-label': `${Math.round(100 * share)} %`}, svg('rect', {x: 0, y: 0, width: 1000 * share, height: 10, class: name})));
}

export function showRollout(rollout) {
  const connected = rollout.nodes - rollout.away;
  const rows = [['have it', rollout.current], ['behind', rollout.behind], ['refused it', rollout.refused],
    ['hold it back', rollout.held], ['away', rollout.away]];
  const parts = [el('p', {}, `Version ${rollout.version}: ${count(rollout.current)} of ${count(connected)} connected nodes have it.`),
    meter(rollout.current, connected, 'available'),
    table([['Nodes that'], ['', true]], rows.map(([words, number]) => [words, count(number)]))];
  if (rollout.connections_cut > 0) {
    parts.push(el('p', {}, `It ended ${count(rollout.connections_cut)} of ${count(rollout.connections)} connections.`));
  }
  if (rollout.held > 0) {
    parts.push(el('p', {class: 'bad'}, `Nodes that hold it back would end ${count(rollout.held_connections_cut)} of ` +
      `${count(rollout.held_connections)} connections.`));
  }
  replace(body('rollout'), ...parts);
}

export function showBudgets(budgets) {
  if (budgets.length === 0) {
    replace(body('budgets'), el('p', {class: 'faint'}, 'There are no bandwidth budgets.'));
    return;
  }
  replace(body('budgets'), ...budgets.flatMap((budget) => [
    el('div', {class: 'bar'}, el('div', {class: 'of'},
      el('span', {}, budget.name, ' ', el('span', {class: 'faint'}, `${budget.direction} ${budget.destination}, ${budget.mode}`)),
      el('span', {class: budget.state === 'ok' ? 'faint' : 'warn'}, `${bits(budget.usage)} of ${bits(budget.capacity)}, ${budget.state}`))),
    meter(budget.usage, budget.capacity, budget.state === 'saturated' ? 'cooldown' : 'in-use'),
    table([['Team'], ['Used', true], ['Wants', true], ['Granted', true], ['Held back', true]],
      budget.teams.map((team) => [team.name, bits(team.usage), bits(team.demand), bits(team.granted), bits(team.throttled)])),
  ]));
}

export function showEvents(events) {
  if (events.length === 0) {
    replace(body('events'), el('p', {class: 'faint'}, 'There are no events.'));
    return;
  }
  const tones = {error: 'bad', warning: 'warn'};
  replace(body('events'), el('ul', {}, ...events.map((event) => el('li', {},
    el('time', {datetime: new Date(event.time).toISOString()}, clock(event.time)),
    el('b', {class: tones[event.level] ?? ''}, event.event),
    event.level === 'info' ? '' : ` (${event.level})`,
    ...Object.entries(event.fields).map(([key, value]) => ` ${key}=${value}`)))));
}
