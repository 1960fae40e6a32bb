'use strict';
// The page of `headstart explore`: its state is the fragment of the address, and every change is a
// request. Figures and tables come from the server as they are in reports.

const $ = id => document.getElementById(id);
const SCHEMES = 'iw10,jump-start,halfback,wise-start,blitzstart,headstart';

/** A number with a unit, in about three digits. */
function format(value, units) {
  for (const [unit, factor] of units) {
    if (value >= factor || unit === units.at(-1)[0]) {
      return `${Number((value / factor).toPrecision(3))} ${unit}`;
    }
  }
  return '';
}

const RATES = [['Gbit/s', 1e9], ['Mbit/s', 1e6], ['kbit/s', 1e3]];
const TIMES = [['s', 1], ['ms', 1e-3]];
const SIZES = [['MB', 1e6], ['kB', 1e3], ['B', 1]];

/** The number of a text with one of these units; NaN of any other text, such as `1 BDP`. */
function parse(text, units) {
  const found = /^\s*([\d.]+)\s*([a-zA-Z/%]*)\s*$/.exec(text);
  const plain = name => name.toLowerCase().replace('/s', '');
  const unit = found && units.find(([name]) => plain(name) === plain(found[2]));
  return unit ? Number(found[1]) * unit[1] : NaN;
}

// Sliders: the least and the most, on a logarithmic scale or not.
const measure = (units, least, most) => ({
  least: Math.log(least), most: Math.log(most), step: (Math.log(most) - Math.log(least)) / 200,
  write: place => format(Math.exp(place), units), read: text => Math.log(parse(text, units)),
});
const percent = (least, most, step) => ({
  least, most, step, write: place => `${Number(place.toFixed(2))} %`, read: text => parse(text, [['%', 1]]),
});
const count = (least, most) => ({ least, most, step: 1, write: place => `${place}`, read: text => Number(text) });

const FIELDS = [
  { name: 'rate', title: 'rate', first: '15 Mbit/s', in: 'path', scale: measure(RATES, 1e5, 1e9) },
  { name: 'rtt', title: 'RTT', first: '60 ms', in: 'path', scale: measure(TIMES, 1e-3, 1) },
  { name: 'buffer', title: 'buffer', first: '115 kB', in: 'path', scale: measure(SIZES, 3e3, 1e7) },
  { name: 'queue', title: 'queue', first: 'drop-tail', in: 'path', choices: [] },
  { name: 'loss', title: 'loss', first: '0 %', in: 'path', scale: percent(0, 10, 0.1) },
  { name: 'load', title: 'load', first: '25 %', in: 'workload', scale: percent(1, 150, 1) },
  { name: 'size', title: 'flow size', first: '100 kB', in: 'workload', scale: measure(SIZES, 1e3, 1e7) },
  { name: 'history', title: 'history', first: '100000', in: 'workload', scale: count(0, 40),
    about: 'Peers that a sender remembers, of 20 (--peers)' },
  { name: 'hint', title: 'hint', first: '100 %', in: 'workload', scale: percent(10, 400, 5),
    about: 'The rate that clients announce, as a share of the bottleneck’s' },
  { name: 'background', title: 'long flows', first: '0', in: 'workload', scale: count(0, 20) },
];

const isNarrow = matchMedia('(max-width: 36rem)');
let catalogue;
// Options that differ from their defaults, by name; the address has them.
let state = new Map();
let edited = null;

const schemes = () => {
  const names = [];
  let depth = 0, name = '';
  for (const c of state.get('schemes') ?? SCHEMES) {
    depth += (c === '(') - (c === ')');
    if (c === ',' && depth === 0) { names.push(name.trim()); name = ''; } else { name += c; }
  }
  return [...names, name.trim()].filter(Boolean);
};
const family = scheme => scheme.split('(')[0];

function values() {
  const query = new URLSearchParams();
  for (const [name, value] of state) query.set(name, value);
  return query;
}

/** The fragment of a state; that of the defaults is not empty, which is where the command began. */
const fragment = () => `#${values().toString() || 'defaults'}`;

function readAddress() {
  state = new Map(new URLSearchParams(location.hash.slice(1)));
  state.delete('defaults');
}

/** Sets one option, the default if the value is null, and asks for the result. */
function set(name, value) {
  const field = FIELDS.find(one => one.name === name);
  if (value === null || (field && value === field.first && !state.has('path'))) state.delete(name);
  else state.set(name, value);
  changed(name);
}

let moved = { name: null, at: 0 };

/** A change by a control: Back undoes it. Moves of one slider within a second are one change. */
function changed(name = null) {
  const now = performance.now();
  const isSame = name !== null && moved.name === name && now - moved.at < 1000;
  moved = { name, at: now };
  if (fragment() !== location.hash) history[isSame ? 'replaceState' : 'pushState'](null, '', fragment());
  show();
  ask();
}

/** The address is another one: by Back or Forward, a link, or typing. */
function travelled() {
  if (fragment() === location.hash) return;
  moved.name = null;
  readAddress();
  show(true);
  ask();
}

// ---- Controls -----------------------------------------------------------------------------------

function element(kind, properties, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  made.append(...children);
  return made;
}

function build() {
  for (const field of FIELDS) {
    const label = element('label', { htmlFor: field.name, textContent: field.title, title: field.about ?? '' });
    const row = element('div', { className: 'field' }, label);
    if (field.choices) {
      field.choices = catalogue.queues;
      field.select = element('select', { id: field.name });
      field.select.append(...field.choices.map(one => element('option', { value: one, textContent: one })));
      field.select.addEventListener('change', () => set(field.name, field.select.value));
      row.append(field.select);
    } else {
      const { least: min, most: max, step, write } = field.scale;
      field.slider = element('input', { type: 'range', id: field.name, min, max, step });
      field.slider.addEventListener('input', () => set(field.name, write(Number(field.slider.value))));
      field.text = element('input', { type: 'text', size: 8, spellcheck: false, autocomplete: 'off' });
      field.text.setAttribute('aria-label', `${field.title}, as text`);
      field.text.addEventListener('change', () => set(field.name, field.text.value.trim() || null));
      row.append(field.slider, field.text);
    }
    $(`${field.in}-fields`).append(row);
  }
  const group = (label, all) => {
    const options = all.map(one => element('option', { value: one.name, textContent: one.title }));
    const made = element('optgroup', { label }, ...options);
    $('preset').append(made);
  };
  group('Papers', catalogue.papers);
  group('Access links', catalogue.paths);
  $('preset').addEventListener('change', () => {
    const one = [...catalogue.papers, ...catalogue.paths].find(path => path.name === $('preset').value);
    if (!one) return;
    for (const name of ['path', 'rate', 'rtt', 'buffer', 'up-rate', 'up-buffer', 'queue', 'loss', 'jitter', 'routers']) {
      state.delete(name);
    }
    // The name of an access link stands for its options.
    for (const [name, value] of catalogue.paths.includes(one) ? [['path', one.name]] : one.options) {
      if (name === 'schemes') state.delete('pair');
      state.set(name, value);
    }
    changed();
  });
  const option = one => element('option', { value: one.name, textContent: one.name, title: one.summary });
  $('add').append(element('option', { value: '', textContent: 'a scheme …' }), ...catalogue.schemes.map(option));
  $('add').addEventListener('change', () => {
    const name = $('add').value;
    $('add').value = '';
    if (name && !schemes().includes(name)) set('schemes', [...schemes(), name].join(','));
  });
  for (const id of ['one', 'other']) {
    $(id).addEventListener('change', () => set('pair', `${$('one').value},${$('other').value}`));
  }
  for (const button of document.querySelectorAll('[data-copy]')) {
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText($(button.dataset.copy).textContent);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
  }
  $('controls').addEventListener('submit', event => event.preventDefault());
}

const pair = () => {
  const names = schemes();
  const told = state.get('pair') ?? '';
  const cut = told.match(/[^,(]+(\([^)]*\))?/g) ?? [];
  if (cut.length === 2) return cut.map(one => one.trim());
  const second = names.includes('halfback') ? 'halfback' : names.find(one => one !== names[0]) ?? names[0];
  return [names.includes('iw10') && second !== 'iw10' ? 'iw10' : names[0], second];
};

/** The value of an option: its own, the path's, or the default. */
function value(field) {
  const path = catalogue.paths.find(one => one.name === state.get('path'));
  const named = path?.options.find(([name]) => name === field.name)?.[1];
  return state.get(field.name) ?? named ?? field.first;
}

/** Has the path box name the path or paper whose values these are. */
function showPath() {
  const all = [...catalogue.paths, ...catalogue.papers];
  const isPath = one => catalogue.paths.includes(one);
  const holds = one => one.options.every(([name, told]) =>
    (isPath(one) && !state.has(name)) || (state.get(name) ?? FIELDS.find(it => it.name === name)?.first) === told);
  const named = catalogue.paths.find(one => one.name === state.get('path'));
  // A path's own numbers are nowhere else in the address.
  const found = all.find(one => (isPath(one) ? one === named : !named) && holds(one));
  $('own').textContent = named && !found ? `${named.title}, changed` : 'own values';
  $('preset').value = found?.name ?? '';
}

/** Shows the state. A slider that is being moved has its own place, unless all is to be written. */
function show(isAll = false) {
  showPath();
  for (const field of FIELDS) {
    const now = value(field);
    if (field.select) { field.select.value = now; continue; }
    const place = field.scale.read(now);
    if ((isAll || document.activeElement !== field.slider) && Number.isFinite(place)) field.slider.value = place;
    field.slider.setAttribute('aria-valuetext', now);
    field.text.value = now;
  }
  const names = schemes();
  const focused = document.activeElement?.dataset?.key;
  $('chips').replaceChildren(...names.map(name => {
    const about = catalogue.schemes.find(one => one.name === family(name));
    const edit = element('button', { type: 'button', textContent: name, title: about?.summary ?? '' });
    edit.dataset.key = `edit ${family(name)}`;
    edit.setAttribute('aria-expanded', edited === family(name));
    edit.addEventListener('click', () => { edited = edited === family(name) ? null : family(name); show(); });
    const remove = element('button', { type: 'button', textContent: '✕' });
    remove.setAttribute('aria-label', `remove ${name}`);
    remove.addEventListener('click', () => {
      const left = schemes().filter(other => other !== name);
      if (left.length) set('schemes', left.join(','));
    });
    remove.disabled = names.length === 1;
    return element('span', { className: 'chip' }, edit, remove);
  }));
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  showParameters(isAll);
  const choices = [...new Set([...names, ...pair()])];
  pair().forEach((name, side) => {
    const select = $(['one', 'other'][side]);
    select.replaceChildren(...choices.map(one => element('option', { value: one, textContent: one })));
    select.value = name;
  });
  const all = [...state].map(([name, one]) => ` --${name}=${quoted(one)}`).filter(word => !word.startsWith(' --pair'));
  $('explore-command').textContent = `headstart explore${all.join('')}`;
}

const quoted = text => /^[\w\-=,.%+/:]*$/.test(text) ? text : `'${text}'`;

/** The parameters of the open chip, which stay while one is typed unless all is to be written. */
function showParameters(isAll) {
  const name = schemes().find(one => family(one) === edited);
  const about = name && catalogue.schemes.find(one => one.name === edited);
  $('parameters').hidden = !about;
  if (!about) { $('parameters').replaceChildren(); $('parameters').dataset.of = ''; return; }
  const isTyped = $('parameters').dataset.of === edited && $('parameters').contains(document.activeElement);
  if (isTyped && !isAll) return;
  $('parameters').dataset.of = edited;
  const own = new Map((name.slice(edited.length + 1, -1) || '').split(',').filter(Boolean)
    .map(one => one.split('=').map(part => part.trim())));
  const rows = about.parameters.map(one => {
    const id = `parameter-${one.name}`;
    const input = element('input', { id, type: 'text', value: own.get(one.name) ?? one.default, title: one.expected });
    input.addEventListener('change', () => {
      const text = input.value.trim();
      if (!text || text === one.default) own.delete(one.name); else own.set(one.name, text);
      const inside = [...own].map(([key, own]) => `${key}=${own}`).join(',');
      const renamed = inside ? `${edited}(${inside})` : edited;
      const before = schemes().find(other => family(other) === edited);
      const told = pair().map(other => other === before ? renamed : other);
      if (state.has('pair')) state.set('pair', told.join(','));
      set('schemes', schemes().map(other => other === before ? renamed : other).join(','));
    });
    const says = element('span', { textContent: `${one.about} (${one.expected})` });
    return element('div', { className: 'field' }, element('label', { htmlFor: id, textContent: one.name }), input, says);
  });
  const head = element('p', { className: 'note', textContent: `${edited}: ${about.summary}` });
  $('parameters').replaceChildren(head, ...rows);
}

// ---- Requests -----------------------------------------------------------------------------------

let racing = null, flowing = null, timer = null, asked = 0;

/** Asks for the result of the present state; an earlier request is given up. */
function ask() {
  asked = performance.now();
  document.body.dataset.state = 'running';
  racing?.abort();
  flowing?.abort();
  for (const id of ['plane', 'table', 'multiples', 'capacity', 'distribution', 'verdict']) $(id).classList.add('stale');
  for (const id of ['capacity', 'multiples', 'flows']) delete document.body.dataset[id];
  clearTimeout(timer);
  // A slider sends many changes: the first goes out at once, the last one too.
  timer = setTimeout(() => { race(); flows(); }, 25);
}

const pause = millis => new Promise(resolve => setTimeout(resolve, millis));

/** An answer of the server; where it has too much to do, again after a while. */
async function fetched(address, signal) {
  for (;;) {
    const response = await fetch(address, { signal, cache: 'no-store' });
    if (response.status !== 503) return response;
    await pause(300);
    if (signal.aborted) return response;
  }
}

/** Shows a refusal, and marks the fields of the options that it names. */
function refuse(text) {
  $('refusal').textContent = text;
  $('refusal').hidden = !text;
  if (text) $('status').textContent = 'refused';
  document.querySelectorAll('#controls .wrong').forEach(one => one.remove());
  for (const { name, text: input, select } of FIELDS) {
    const line = text.split('\n').find(one => new RegExp(`--${name}\\b(?!-)`).test(one));
    const control = input ?? select;
    control.toggleAttribute('aria-invalid', false);
    control.removeAttribute('aria-describedby');
    if (!line) continue;
    control.setAttribute('aria-invalid', 'true');
    control.setAttribute('aria-describedby', `wrong-${name}`);
    const told = line.replace(new RegExp(`^--${name}:\\s*`), '');
    control.closest('.field').append(element('p', { className: 'wrong', id: `wrong-${name}`, textContent: told }));
  }
}

async function race() {
  const control = racing = new AbortController();
  $('status').textContent = 'running …';
  document.body.dataset.state = 'running';
  try {
    const query = values();
    query.delete('pair');
    if (isNarrow.matches) query.set('narrow', '1');
    const response = await fetched(`race?${query}`, control.signal);
    if (!response.ok) { refuse(await response.text()); document.body.dataset.state = 'refused'; return; }
    refuse('');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        event(text.slice(0, end));
      }
    }
  } catch (error) {
    if (error.name !== 'AbortError') { $('status').textContent = 'no answer: is `headstart explore` still running?'; }
  }
}

function event(text) {
  const part = name => text.split('\n').filter(line => line.startsWith(`${name}:`)).map(line => line.slice(name.length + 1).trim()).join('\n');
  const [kind, data] = [part('event'), JSON.parse(part('data') || 'null')];
  if (kind === 'failed') refuse(data);
  if (kind === 'end') document.body.dataset.state = 'done';
  if (kind === 'answer') answer(data);
  if (kind === 'capacity' || kind === 'multiples') {
    // Drawn by the server's report, as the other figures.
    $(kind).innerHTML = data.figure ?? '';
    $(kind).append(element('p', { className: 'note', textContent: data.nothing ?? data.command }));
    $(kind).classList.remove('stale');
    document.body.dataset[kind] = data.command ?? 'none';
  }
}

// ---- The state before, and one that is kept -----------------------------------------------------

// Each has a fragment, and mean completion time (ms) and harm by scheme.
let before = null, now = null, kept = null;

/** Remembers the answer of a state; the one of another state before it becomes the ghost. */
function remember(rows) {
  const means = rows.map(row => [row.scheme, { y: row.mean_ms, x: row.harm }]);
  if (now && now.fragment !== fragment()) before = now;
  now = { fragment: fragment(), means: Object.fromEntries(means) };
  sessionStorage.setItem('headstart-now', JSON.stringify(now));
}

/** Draws where the schemes were, with a line to where they are. */
function drawGhosts() {
  const other = kept ?? before;
  const svg = document.querySelector('#plane svg');
  const shown = other && other.fragment !== now?.fragment;
  $('keep').hidden = !now;
  for (const id of ['swap', 'drop']) $(id).hidden = !kept;
  $('difference').replaceChildren();
  $('ghosts').textContent = shown ? `Dashed circles: ${kept ? 'A' : 'the state before'}.` : '';
  if (!shown || !svg?.dataset.box) return;
  const [left, top, right, bottom] = svg.dataset.box.split(' ').map(Number);
  const at = (axis, from, to, value) => {
    const [low, high, scale] = svg.dataset[axis].split('|');
    const of = scale === 'log' ? Math.log : Number;
    return from + (to - from) * (of(value) - of(Number(low))) / (of(Number(high)) - of(Number(low)));
  };
  const place = ({ x, y }) => [at('x', left, right, x), at('y', bottom, top, y)];
  const made = (kind, attributes) => {
    const one = document.createElementNS('http://www.w3.org/2000/svg', kind);
    for (const [name, value] of Object.entries({ class: 'ghost', ...attributes })) one.setAttribute(name, value);
    return one;
  };
  // An inner drawing cuts off what lies beyond the axes.
  const inner = made('svg', { x: left, y: top, width: right - left, height: bottom - top,
    viewBox: `${left} ${top} ${right - left} ${bottom - top}`, 'aria-hidden': 'true' });
  let beyond = 0;
  for (const [scheme, point] of Object.entries(other.means)) {
    if (point.x === null || point.y === null) continue;
    const [x1, y1] = place(point);
    if (x1 < left || x1 > right || y1 < top || y1 > bottom) beyond += 1;
    inner.append(made('circle', { cx: x1, cy: y1, r: 6 }));
    const to = now.means[scheme];
    if (to && to.x !== null && to.y !== null) {
      const [x2, y2] = place(to);
      inner.append(made('line', { x1, y1, x2, y2 }));
    }
  }
  svg.append(inner);
  if (beyond) $('ghosts').textContent += ` ${beyond} of them lie beyond the figure.`;
  if (kept) $('difference').append(differences());
}

/** A and this state side by side. */
function differences() {
  const number = (value, digits) => value === undefined || value === null ? '–' : value.toFixed(digits);
  const heads = ['scheme', 'A: mean (ms)', 'now: mean (ms)', 'change (%)', 'A: harm', 'now: harm'];
  const head = element('tr', {}, ...heads.map(text => element('th', { scope: 'col', textContent: text })));
  const rows = Object.entries(now.means).map(([scheme, point]) => {
    const a = kept.means[scheme];
    const change = a && a.y ? 100 * (point.y / a.y - 1) : undefined;
    const texts = [number(a?.y, 0), number(point.y, 0), number(change, 1), number(a?.x, 2), number(point.x, 2)];
    return element('tr', {}, element('th', { scope: 'row', textContent: scheme }),
      ...texts.map(text => element('td', { className: 'number', textContent: text })));
  });
  const caption = element('caption', {}, 'A is ', element('a', { href: kept.fragment, textContent: 'this state' }));
  const table = element('table', {}, caption, element('thead', {}, head), element('tbody', {}, ...rows));
  return element('div', { className: 'wide', tabIndex: 0, role: 'region', ariaLabel: 'A and this state' }, table);
}

function keep(state) {
  kept = state;
  if (kept) sessionStorage.setItem('headstart-kept', JSON.stringify(kept));
  else sessionStorage.removeItem('headstart-kept');
  redraw();
}

/** Takes the ghosts away and draws them again. */
function redraw() {
  document.querySelectorAll('#plane svg.ghost').forEach(one => one.remove());
  drawGhosts();
}

$('keep').addEventListener('click', () => keep(now));
$('drop').addEventListener('click', () => keep(null));
$('swap').addEventListener('click', () => {
  const other = kept;
  keep(now);
  history.pushState(null, '', other.fragment);
  moved.name = null;
  readAddress();
  show();
  ask();
});

function answer(found) {
  $('seeds').max = found.of;
  $('seeds').value = found.seeds;
  $('race-command').textContent = found.command;
  if (asked) { document.body.dataset.first = Math.round(performance.now() - asked); asked = 0; }
  const seeds = `${found.seeds} of ${found.of} seed${found.of === 1 ? '' : 's'}`;
  const duration = /--duration=(\S+)/.exec(found.command)?.[1].replace(/s$/, ' s') ?? '';
  if (found.nothing) { refuse(found.nothing); $('status').textContent = seeds; return; }
  $('status').textContent = `${found.headline} · ${seeds}, each of ${duration} simulated`;
  document.body.dataset.seeds = found.seeds;
  $('verdict').textContent = found.verdict;
  // Drawn and escaped by the server's report.
  for (const id of ['plane', 'table', 'distribution']) $(id).innerHTML = found[id];
  for (const id of ['plane', 'table', 'distribution', 'verdict']) $(id).classList.remove('stale');
  for (const wide of document.querySelectorAll('#table .wide')) {
    // A table that scrolls can be reached by keyboard, and says so.
    wide.tabIndex = 0;
    wide.setAttribute('role', 'region');
    wide.setAttribute('aria-label', 'Results by scheme');
    if (wide.scrollWidth > wide.clientWidth) wide.after(element('p', { className: 'note', textContent: 'More columns to the right.' }));
  }
  remember(found.rows);
  redraw();
}

async function flows() {
  const control = flowing = new AbortController();
  try {
    const query = values();
    query.set('pair', pair().join(','));
    if (isNarrow.matches) query.set('narrow', '1');
    const response = await fetched(`flows?${query}`, control.signal);
    if (!response.ok) { $('says').textContent = await response.text(); return; }
    const found = await response.json();
    $('trace-command').textContent = found.command;
    $('flows').innerHTML = found.views.join('');
    player.load(found);
    document.body.dataset.flows = found.command;
  } catch (error) {
    if (error.name !== 'AbortError') throw error;
  }
}

// ---- The path, slowed down ----------------------------------------------------------------------

const [BACK, KIND, , SENT, OUT, END, LOST] = [0, 1, 2, 3, 4, 5, 6];

const player = {
  found: null, at: 0, end: 1, decimals: 1, events: [], isPlaying: false, before: 0,

  load(found) {
    const isFirst = !this.found;
    this.found = found;
    const ends = found.flows.flatMap(flow => flow.packets.map(packet => packet[END]));
    // From the SYN until the slower flow is complete, or its last packet.
    const last = ends.reduce((a, b) => Math.max(a, b), 0.01);
    const complete = found.flows.map(flow => flow.completed_ms ?? last);
    this.end = Math.max(...complete) * 1.02;
    // Steps are as long as the clock shows.
    this.decimals = Math.max(0, 3 - Math.floor(Math.log10(this.end)) - 1 + 1);
    const unit = 10 ** -this.decimals;
    const moments = found.flows.flatMap(flow => flow.packets.flatMap(one => [one[SENT], one[OUT] ?? one[SENT], one[END]]));
    this.events = [...new Set([...moments.map(at => Math.round(at / unit) * unit), this.end])].filter(at => at <= this.end).sort((a, b) => a - b);
    for (const flow of found.flows) flow.delivered = delivered(flow);
    $('time').max = this.end;
    // Where something is to be seen: the first flight on its way.
    if (isFirst || this.at > this.end) this.at = Math.min(this.end * 0.45, this.end);
    this.draw();
  },

  toggle() {
    this.isPlaying = !this.isPlaying;
    if (this.isPlaying && this.at >= this.end) this.at = 0;
    $('play').textContent = this.isPlaying ? 'Pause' : 'Play';
    this.before = performance.now();
    if (this.isPlaying) requestAnimationFrame(now => this.frame(now));
  },

  frame(now) {
    if (!this.isPlaying) return;
    this.at += Math.max(0, now - this.before) / Number($('slower').value);
    this.before = now;
    if (this.at >= this.end) { this.at = this.end; this.toggle(); }
    this.draw();
    if (this.isPlaying) requestAnimationFrame(next => this.frame(next));
  },

  step(direction) {
    if (this.isPlaying) this.toggle();
    const beyond = 10 ** -this.decimals / 2;
    const next = direction > 0
      ? this.events.find(at => at > this.at + beyond)
      : this.events.findLast(at => at < this.at - beyond);
    this.at = next ?? (direction > 0 ? this.end : 0);
    this.draw();
  },

  draw() {
    $('time').value = this.at;
    $('clock').textContent = `${this.at.toFixed(this.decimals)} ms`;
    if (!this.found) return;
    const canvas = $('lanes');
    const width = canvas.clientWidth, height = 170 * this.found.flows.length;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const said = this.found.flows.map((flow, number) => lane(pen, this.found, flow, number, width, this.at));
    $('says').textContent = said.join(' ');
  },
};

/** Times at which the receiver has more of the stream, with the segments it has then. */
function delivered(flow) {
  const had = new Set();
  const moments = [];
  const arrivals = flow.packets.filter(one => !one[BACK] && (one[KIND] === 'data' || one[KIND] === 'again') && !one[LOST]);
  for (const one of arrivals.sort((a, b) => a[END] - b[END])) {
    if (!had.has(one[2])) { had.add(one[2]); moments.push(one[END]); }
  }
  return moments;
}

/** The last of rows that begin with a time at which `at` has come. */
function latest(rows, at) {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle][0] <= at) low = middle + 1; else high = middle;
  }
  return rows[low - 1];
}

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const kilobytes = bytes => bytes >= 1e7 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1000).toFixed(bytes < 1e4 ? 1 : 0)} kB`;

/** One flow: its sender, the queue, the link and the receiver at a time. */
function lane(pen, found, flow, number, width, at) {
  const [ink, soft, line, back] = ['--ink', '--soft', '--line', '--back'].map(colour);
  const own = getComputedStyle(document.querySelectorAll('.pair i')[number] ?? document.body).color;
  const lost = matchMedia('(prefers-color-scheme: dark)').matches ? '#ff7b6b' : '#c0271a';
  const top = 170 * number, there = top + 74, home = top + 124;
  const isNarrow = width < 560;
  const box = isNarrow ? 34 : 74, queue = isNarrow ? 40 : 60;
  const from = 12 + box + 14 + queue, to = width - box - 12;
  pen.font = '13px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  const now = latest(flow.states, at), waiting = latest(flow.queue, at);
  const [, window, flight, phase] = now ?? [0, 0, 0, ''];
  const segments = flow.delivered.filter(one => one <= at).length;
  const share = flow.delivered.length ? segments / flow.delivered.length : 0;
  const isDone = flow.completed_ms !== null && at >= flow.completed_ms;
  const state = isDone ? `complete after ${flow.completed_ms.toFixed(0)} ms` : `${Math.round(100 * share)} % arrived`;
  pen.fillStyle = own;
  pen.font = '600 13px system-ui, sans-serif';
  pen.fillText(flow.scheme, 12, top + 18);
  const after = 12 + pen.measureText(flow.scheme).width + 14;
  pen.font = '13px system-ui, sans-serif';
  pen.fillStyle = soft;
  const told = isNarrow ? state : `${state} · ${phase || 'handshake'} · window ${kilobytes(window)}, in flight ${kilobytes(flight)}`;
  pen.fillText(told, after, top + 18);
  // Both ways of the link, and the ends.
  pen.strokeStyle = line;
  pen.fillStyle = back;
  pen.lineWidth = 1;
  for (const y of [there, home]) {
    pen.beginPath();
    pen.roundRect(from, y - 13, to - from, 26, 5);
    pen.fill();
    pen.stroke();
  }
  pen.fillStyle = soft;
  pen.textAlign = 'center';
  for (const [x, name, short] of [[12, 'sender', 'snd'], [width - box - 12, 'receiver', 'rcv']]) {
    pen.beginPath();
    pen.roundRect(x, there - 26, box, home - there + 52, 6);
    pen.fillStyle = back;
    pen.fill();
    pen.stroke();
    pen.fillStyle = soft;
    pen.fillText(isNarrow ? short : name, x + box / 2, (there + home) / 2);
  }
  // The part of the stream that arrived fills the receiver.
  pen.fillStyle = own;
  pen.globalAlpha = 0.3;
  const full = home - there + 52;
  pen.fillRect(width - box - 12, there - 26 + full * (1 - share), box, full * share);
  pen.globalAlpha = 1;
  // The queue, as a share of its limit.
  const x = 12 + box + 8;
  const [, packets, bytes] = waiting ?? [0, 0, 0];
  const filled = Math.min(1, found.limit_packets ? packets / found.limit_packets : bytes / (found.limit_bytes ?? 1e5));
  pen.beginPath();
  pen.roundRect(x, there - 26, queue, 52, 4);
  pen.fillStyle = back;
  pen.fill();
  pen.strokeStyle = soft;
  pen.stroke();
  pen.fillStyle = own;
  pen.globalAlpha = 0.75;
  pen.fillRect(x + 1, there + 25 - 50 * filled, queue - 2, 50 * filled);
  pen.globalAlpha = 1;
  pen.fillStyle = soft;
  pen.fillText(isNarrow ? 'queue' : `queue ${packets ? `${packets} p` : ''}`, x + queue / 2, there - 36);
  let flying = 0, acks = 0, gone = 0;
  for (const packet of flow.packets) {
    const isBack = packet[BACK] === 1;
    if (packet[LOST] && packet[END] <= at) gone += 1;
    const fades = packet[LOST] ? Math.max(8, player.end * 0.03) : 0;
    if (packet[SENT] > at || packet[END] + fades < at) continue;
    const out = packet[OUT];
    const isOut = out !== null && out <= at;
    const length = Math.max(packet[END] - (out ?? packet[SENT]), 1e-6);
    const place = isOut ? Math.min(1, (at - out) / length) : 0;
    const [begin, end] = isBack ? [to, from] : [from, to];
    const px = begin + (end - begin) * place, py = isBack ? home : there;
    if (packet[LOST] && packet[END] <= at) {
      pen.fillStyle = lost;
      pen.font = '700 15px system-ui, sans-serif';
      pen.fillText('✕', isOut ? to - 12 : x + queue / 2, isOut ? py - 20 : there + 38);
      continue;
    }
    // Waiting packets are the filled part of the queue.
    if (!isOut) continue;
    pen.fillStyle = pen.strokeStyle = packet[KIND] === 'other' ? soft : own;
    if (packet[KIND] === 'ack') {
      acks += 1;
      pen.fillRect(px - 3, py - 2, 6, 4);
    } else if (packet[KIND] === 'other') {
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.arc(px, py, 4, 0, 7);
      pen.stroke();
    } else {
      flying += 1;
      if (packet[KIND] === 'data') pen.fillRect(px - 3, py - 7, 6, 14);
      else {
        pen.lineWidth = 1.5;
        pen.strokeRect(px - 3, py - 7, 6, 14);
        pen.beginPath();
        pen.moveTo(px - 3, py + 7);
        pen.lineTo(px - 3, py - 7);
        pen.lineTo(px + 3, py - 7);
        pen.fill();
      }
    }
  }
  return `${flow.scheme}: ${state}; ${packets} packets wait, ${flying} are on the link, ${acks} acknowledgements return, ${gone} lost so far.`;
}

// ---- Start --------------------------------------------------------------------------------------

$('play').addEventListener('click', () => player.toggle());
$('step').addEventListener('click', () => player.step(1));
$('back').addEventListener('click', () => player.step(-1));
$('time').addEventListener('input', () => { player.at = Number($('time').value); player.draw(); });
addEventListener('resize', () => player.draw());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => player.draw());
addEventListener('popstate', travelled);
addEventListener('hashchange', travelled);
isNarrow.addEventListener('change', () => ask());

(async () => {
  catalogue = await (await fetch('catalogue')).json();
  readAddress();
  if (!location.hash) {
    state = new Map(catalogue.first.filter(([name, one]) => name !== 'schemes' || one !== SCHEMES));
  }
  build();
  for (const name of ['now', 'kept']) {
    const told = JSON.parse(sessionStorage.getItem(`headstart-${name}`) ?? 'null');
    if (name === 'kept') kept = told;
    // A reload goes on where it was.
    else if (told?.fragment === location.hash) now = told;
  }
  history.replaceState(null, '', fragment());
  show();
  ask();
})();
