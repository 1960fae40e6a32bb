// Sorts a report's tables, selects its schemes, shows values of its figures under the pointer and
// by keyboard, and lays any two flows over one another. All of the report can be read without it.
// It loads nothing and sends nothing.
'use strict';
(() => {

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

const make = (tag, attributes = {}, text = '') => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
};

// ---- The state, kept in the address: `#pick=iw10,halfback&flows=iw10,halfback`.

const readState = () => {
    const state = {};
    for (const part of location.hash.slice(1).split('&')) {
        const [key, value] = part.split('=');
        if (value) state[key] = value.split(',').map(decodeURIComponent);
    }
    return state;
};

const writeState = (key, names) => {
    const state = { ...readState(), [key]: names };
    const parts = Object.entries(state).filter(([, values]) => values.length > 0);
    const text = parts.map(([name, values]) => `${name}=${values.map(encodeURIComponent).join(',')}`).join('&');
    history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
};

// A link to a part of the page would otherwise replace the state.
for (const link of all('nav a[href^="#"]')) {
    link.addEventListener('click', event => {
        event.preventDefault();
        document.querySelector(link.getAttribute('href')).scrollIntoView();
    });
}

// ---- Tables: a click on a head sorts by its column, the better end first.

// A number, a text, or nothing: nothing stays last in either direction.
const keyOf = cell => {
    if (!cell) return null;
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent.trim();
    return text === '' || text === '\u2013' ? null : text;
};

const compare = (a, b) => {
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    return String(a).localeCompare(String(b), 'en', { numeric: true });
};

const sortBy = (table, column, direction) => {
    const sign = direction === 'ascending' ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map(row => ({ row, key: keyOf(row.cells[column]) }));
    rows.sort((a, b) => {
        if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
        return sign * compare(a.key, b.key);
    });
    table.tBodies[0].append(...rows.map(({ row }) => row));
};

for (const table of all('table')) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
        const button = make('button', { type: 'button', title: 'sort by this column' });
        button.append(...head.childNodes);
        head.append(button);
        head.setAttribute('aria-sort', 'none');
        button.addEventListener('click', () => {
            const first = head.dataset.better === 'higher' ? 'descending' : 'ascending';
            const other = first === 'ascending' ? 'descending' : 'ascending';
            const direction = head.getAttribute('aria-sort') === first ? other : first;
            for (const one of heads) one.setAttribute('aria-sort', one === head ? direction : 'none');
            sortBy(table, column, direction);
        });
    });
}

// ---- Chips: those picked keep their colours, the rest goes grey in every figure and table.

const bar = document.querySelector('[data-picks]');
const names = bar ? JSON.parse(bar.dataset.picks) : [];
const picked = new Set();
const chips = new Map();

// A row may say more behind its name.
const nameOfRow = row => {
    const text = row.cells[0]?.textContent.trim() ?? '';
    return names.find(name => text === name || text.startsWith(`${name} `));
};

const showPicks = () => {
    const mark = (element, name) => {
        element.classList.toggle('dim', picked.size > 0 && !picked.has(name));
        element.classList.toggle('on', picked.has(name));
    };
    for (const group of all('svg [data-name]')) {
        if (names.includes(group.dataset.name)) mark(group, group.dataset.name);
    }
    for (const row of all('tbody tr')) {
        const name = nameOfRow(row);
        if (name) mark(row, name);
    }
    for (const svg of all('svg[data-of]')) {
        const details = svg.closest('details');
        if (details && names.includes(svg.dataset.of)) mark(details, svg.dataset.of);
    }
    for (const [name, chip] of chips) chip.setAttribute('aria-pressed', String(picked.has(name)));
    if (bar) bar.lastChild.disabled = picked.size === 0;
};

const readPicks = () => {
    picked.clear();
    for (const name of readState().pick ?? []) if (names.includes(name)) picked.add(name);
    showPicks();
};

if (bar) {
    bar.append(make('span', {}, 'Pick:'));
    const changed = () => {
        writeState('pick', [...picked]);
        showPicks();
    };
    for (const name of names) {
        const chip = make('button', { type: 'button', 'aria-pressed': 'false' }, name);
        chip.addEventListener('click', () => {
            if (!picked.delete(name)) picked.add(name);
            changed();
        });
        chips.set(name, chip);
        bar.append(chip);
    }
    const none = make('button', { type: 'button', class: 'none' }, 'clear');
    none.addEventListener('click', () => {
        picked.clear();
        changed();
    });
    bar.append(none);
    bar.hidden = false;
}

// ---- Plots: from places in a drawing to values, and back.

const axisOf = (text, from, to) => {
    const [low, high, scale, title, unit] = text.split('|');
    const spread = scale === 'log' ? Math.log10 : value => value;
    const back = scale === 'log' ? value => 10 ** value : value => value;
    const [begin, end] = [spread(Number(low)), spread(Number(high))];
    // A place is known to a tenth of a pixel: digits beyond it would be made up.
    const decimals = value => {
        const pixel = scale === 'log' ? value * Math.LN10 * (end - begin) : end - begin;
        return Math.min(6, Math.max(0, Math.ceil(-Math.log10(Math.abs(pixel / (to - from)) * 0.5))));
    };
    return {
        title,
        unit,
        place: value => from + (spread(value) - begin) / (end - begin) * (to - from),
        value: place => back(begin + (place - from) / (to - from) * (end - begin)),
        round: value => String(Number(value.toFixed(decimals(value)))),
    };
};

const plotOf = svg => {
    const [left, top, right, bottom] = svg.dataset.box.split(' ').map(Number);
    return {
        left, top, right, bottom,
        x: axisOf(svg.dataset.x, left, right),
        y: axisOf(svg.dataset.y, bottom, top),
    };
};

const COORDINATES = /([ML])(-?[\d.]+) (-?[\d.]+)/g;

// A series' points in order: their place and, if the drawing has them, their values. The points of
// a line are its corners.
const pointsOf = (group, plot) => {
    if (group.dataset.points) {
        return group.dataset.points.split(';').map(text => {
            const [x, y] = text.split(' ').map(part => part.split(':'));
            return { x: plot.x.place(Number(x[0])), y: plot.y.place(Number(y[0])), known: [x, y] };
        }).filter(point => point.x > plot.left - 1 && point.x < plot.right + 1
            && point.y > plot.top - 1 && point.y < plot.bottom + 1);
    }
    const path = group.querySelector('.marks') ?? group.querySelector('.line');
    const places = path ? [...path.getAttribute('d').matchAll(COORDINATES)] : [];
    return places.map(([, command, x, y]) => ({ x: Number(x), y: Number(y), begins: command === 'M' }));
};

// The place on a series nearest to (x, y): one of its points, or any place of its line if it has no
// points.
const nearestOn = (series, x, y) => {
    let best = null;
    const offer = point => {
        const distance = Math.hypot(point.x - x, point.y - y);
        if (!best || distance < best.distance) best = { ...point, distance };
    };
    series.points.forEach((point, index) => {
        const before = series.points[index - 1];
        if (series.isLine && before && !point.begins) {
            const [dx, dy] = [point.x - before.x, point.y - before.y];
            const share = ((x - before.x) * dx + (y - before.y) * dy) / (dx * dx + dy * dy || 1);
            const kept = Math.min(1, Math.max(0, share));
            offer({ x: before.x + kept * dx, y: before.y + kept * dy });
        } else {
            offer(point);
        }
    });
    return best;
};

// Readable series of a drawing: those neither hidden nor grey.
const readable = svg => {
    const plot = plotOf(svg);
    const shown = group => !group.classList.contains('dim') && getComputedStyle(group).display !== 'none';
    const series = all(':scope > g[data-name]', svg).filter(shown).map(group => {
        const side = svg.dataset.over && flows[group.classList.contains('k0') ? 0 : 1];
        return {
            name: side ? `${side}, ${group.dataset.name}` : group.dataset.name,
            isLine: !group.dataset.points && !group.querySelector('.marks'),
            points: pointsOf(group, plot),
        };
    });
    return { plot, series: series.filter(one => one.points.length > 0) };
};

// ---- Readings: the value nearest to the pointer; arrow keys move along a series and from one to
// the next.

const tip = make('div', { class: 'tip', role: 'status' });
tip.hidden = true;
document.body.append(tip);
const SVG = 'http://www.w3.org/2000/svg';
const ring = document.createElementNS(SVG, 'circle');
ring.setAttribute('class', 'ring');
ring.setAttribute('r', '7');

let shownIn = null;

const hide = () => {
    shownIn = null;
    tip.hidden = true;
    ring.remove();
};

const show = (svg, plot, name, point) => {
    const line = (axis, place, known) => {
        const unit = axis.unit ? ` ${axis.unit}` : '';
        if (!known) return `${axis.title}: ${axis.round(axis.value(place))}${unit}`;
        const interval = known.length > 1 ? ` [${known[1]}, ${known[2]}]` : '';
        return `${axis.title}: ${known[0]}${interval}${unit}`;
    };
    const lines = [line(plot.x, point.x, point.known?.[0]), line(plot.y, point.y, point.known?.[1])];
    tip.replaceChildren(make('strong', {}, name), ...lines.map(text => make('span', {}, text)));
    ring.setAttribute('cx', point.x);
    ring.setAttribute('cy', point.y);
    svg.append(ring);
    shownIn = svg;
    tip.hidden = false;
    const at = new DOMPoint(point.x, point.y).matrixTransform(svg.getScreenCTM());
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const left = at.x + 14 + width > innerWidth ? at.x - 14 - width : at.x + 14;
    const top = at.y - height - 10 < 0 ? at.y + 14 : at.y - height - 10;
    tip.style.left = `${Math.max(4, left) + scrollX}px`;
    tip.style.top = `${top + scrollY}px`;
};

// Further from everything than this, in the drawing's pixels, nothing is meant.
const REACH = 40;

const readAt = (svg, event) => {
    const matrix = svg.getScreenCTM();
    if (!matrix) return;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const { plot, series } = readable(svg);
    const found = series.map(one => ({ name: one.name, point: nearestOn(one, at.x, at.y) }));
    const nearest = Math.min(...found.map(({ point }) => point.distance));
    if (nearest > REACH) return hide();
    // Lines that lie on one another are all named.
    const here = found.filter(({ point }) => point.distance < nearest + 0.05);
    const best = here[0].point;
    const together = here.filter(({ point }) => Math.hypot(point.x - best.x, point.y - best.y) < 0.11);
    show(svg, plot, [...new Set(together.map(({ name }) => name))].join(' = '), best);
};

const walk = (svg, event) => {
    const { plot, series } = readable(svg);
    if (series.length === 0) return;
    const cursor = svg.cursor ?? { row: 0, column: 0 };
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    const row = (Math.min(cursor.row, series.length - 1) + (step?.[0] ?? 0) + series.length) % series.length;
    const last = series[row].points.length - 1;
    let column = Math.min(last, Math.max(0, Math.min(cursor.column, last) + (step?.[1] ?? 0)));
    if (event.key === 'Home') column = 0;
    if (event.key === 'End') column = last;
    svg.cursor = { row, column };
    show(svg, plot, series[row].name, series[row].points[column]);
};

for (const svg of all('svg[data-box]')) {
    svg.setAttribute('tabindex', '0');
    svg.addEventListener('pointermove', event => readAt(svg, event));
    svg.addEventListener('pointerdown', event => readAt(svg, event));
    svg.addEventListener('pointerleave', event => {
        if (event.pointerType === 'mouse') hide();
    });
    svg.addEventListener('keydown', event => {
        if (event.key === 'Escape') return hide();
        if (!['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp', 'Home', 'End'].includes(event.key)) return;
        event.preventDefault();
        walk(svg, event);
    });
    svg.addEventListener('focus', event => {
        if (svg.matches(':focus-visible')) walk(svg, event);
    });
    // A touch reads in one figure before the other loses the focus.
    svg.addEventListener('blur', () => {
        if (shownIn === svg) hide();
    });
}

// ---- Flows: any two over one another, each in its colour.

const overlays = all('.overlay');
const subjects = [...new Set(all('svg[data-of]').map(svg => svg.dataset.of))];
const drawingOf = (subject, view) =>
    all('svg[data-of]').find(svg => svg.dataset.of === subject && svg.dataset.view === view);
const flows = all('[data-side] b', overlays[0] ?? bar ?? document.head).map(name => name.textContent);

// A series of one drawing with the places it has in another.
const moved = (group, from, to, side) => {
    const copy = group.cloneNode(true);
    copy.setAttribute('class', `k${side}`);
    for (const path of all('path', copy)) {
        path.setAttribute('d', path.getAttribute('d').replace(COORDINATES, (_, command, x, y) => {
            const place = [to.x.place(from.x.value(Number(x))), to.y.place(from.y.value(Number(y)))];
            return command + place.map(one => Number(one.toFixed(1))).join(' ');
        }));
    }
    for (const clip of all('svg', copy)) {
        const box = [to.left, to.top, to.right - to.left, to.bottom - to.top];
        ['x', 'y', 'width', 'height'].forEach((name, index) => clip.setAttribute(name, box[index]));
        clip.setAttribute('viewBox', box.join(' '));
    }
    return copy;
};

const layOver = overlay => {
    for (const svg of all('svg[data-over]', overlay)) {
        const to = plotOf(svg);
        const before = all(':scope > g[data-name]', svg);
        const next = before.at(-1)?.nextSibling ?? svg.lastElementChild;
        const sources = flows.map(name => drawingOf(name, svg.dataset.over));
        const groups = sources.flatMap((source, side) => {
            if (!source) return [];
            return all(':scope > g[data-name]', source).map(group => moved(group, plotOf(source), to, side));
        });
        for (const group of before) group.remove();
        for (const group of groups) svg.insertBefore(group, next);
        const said = sources.map(source => source?.getAttribute('aria-label') ?? '');
        svg.setAttribute('aria-label', `Over one another: ${said.join(' ')}`);
    }
    all('[data-side]', overlay).forEach((part, side) => {
        part.querySelector('select').value = flows[side];
        const note = all('svg[data-of]').find(svg => svg.dataset.of === flows[side])?.dataset.note;
        part.querySelector('output').textContent = note ?? '';
    });
};

for (const overlay of overlays) {
    all('[data-side]', overlay).forEach((part, side) => {
        const which = side === 0 ? 'first flow' : 'second flow';
        const select = make('select', { 'aria-label': which });
        for (const subject of subjects) select.append(make('option', { value: subject }, subject));
        select.value = flows[side];
        part.querySelector('b').replaceWith(select);
        select.addEventListener('change', () => {
            flows[side] = select.value;
            writeState('flows', flows);
            overlays.forEach(layOver);
        });
    });
}

const readFlows = () => {
    const wanted = readState().flows ?? [];
    if (wanted.length !== 2 || !wanted.every(name => subjects.includes(name)) || flows.length !== 2) return;
    wanted.forEach((name, side) => { flows[side] = name; });
    overlays.forEach(layOver);
};

// ---- From the address, now and when it changes; and all that is closed is opened for print.

const read = () => {
    readPicks();
    readFlows();
};
addEventListener('hashchange', read);
read();

let opened = [];
addEventListener('beforeprint', () => {
    opened = all('details:not([open])');
    for (const details of opened) details.open = true;
});
addEventListener('afterprint', () => {
    for (const details of opened) details.open = false;
});

})();
