// Sorts a report's tables, selects its schemes, shows values of its figures under the pointer and
// by keyboard, lays any two flows over one another, and saves figures as files. All of the report
// can be read without it. It loads nothing and sends nothing.
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

// ---- Export: each figure as a file, with the series that are shown, in colours for white paper.

// Pixels of a bitmap, and points on paper, for a pixel of the drawing: that is 7 inches wide.
const [FINE, POINTS] = [3, 0.6];
const rules = [...document.styleSheets[0].cssRules].filter(rule => /^(:root|\.k\d|\.dim|svg )/.test(rule.selectorText));
const isShown = element => !(element.closest('.more') && getComputedStyle(element.closest('.more')).display === 'none');
const tenth = number => Number(number.toFixed(1));

const svgFile = svg => {
    const copy = svg.cloneNode(true);
    const own = all('*', svg);
    all('*', copy).forEach((element, index) => (isShown(own[index]) && own[index] !== ring) || element.remove());
    const sheet = document.createElementNS(SVG, 'style');
    sheet.textContent = 'svg:root{color:var(--ink);background:var(--back)}' + rules.map(rule => rule.cssText).join('');
    copy.prepend(sheet);
    copy.removeAttribute('tabindex');
    return new XMLSerializer().serializeToString(copy);
};

const pngFile = async svg => {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(svgFile(svg))}`;
    await image.decode();
    const canvas = make('canvas', { width: image.width * FINE, height: image.height * FINE });
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise(resolve => canvas.toBlob(resolve, 'image/png'));
};

// Point by point with the ends of intervals; bars and heat maps have their rows written.
const rowsOf = svg => {
    if (svg.dataset.rows) return JSON.parse(svg.dataset.rows);
    const plot = plotOf(svg);
    const [x, y] = [plot.x, plot.y].map(axis => axis.unit ? `${axis.title} (${axis.unit})` : axis.title);
    const read = point => [[plot.x.round(plot.x.value(point.x))], [plot.y.round(plot.y.value(point.y))]];
    const rows = all(':scope > g[data-name]', svg).filter(isShown).flatMap(group => {
        const side = svg.dataset.over ? `${flows[group.classList.contains('k0') ? 0 : 1]}, ` : '';
        return pointsOf(group, plot).map(point => [
            side + group.dataset.name,
            ...(point.known ?? read(point)).flatMap(([value, low = '', high = '']) => [value, low, high]),
        ]);
    });
    const table = [['series', x, `${x} low`, `${x} high`, y, `${y} low`, `${y} high`], ...rows];
    const used = table[0].map((_, column) => rows.some(row => row[column] !== ''));
    return table.map(row => row.filter((_, column) => used[column]));
};

const csvFile = svg => rowsOf(svg).map(row => row.map(
    cell => /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell,
).join(',') + '\n').join('');

const TEX = {
    '\\': '\\textbackslash{}', '~': '\\textasciitilde{}', '^': '\\textasciicircum{}', '|': '$|$', '<': '$<$', '>': '$>$',
    '\u2026': '\\dots{}', '\u2212': '$-$', '\u00d7': '$\\times$', '\u00b1': '$\\pm$', '\u2264': '$\\le$', '\u2265': '$\\ge$',
    '\u2013': '--', '\u2009': '\\,', '\u202f': '\\,', '\u00a0': '~', '\u00b5': '$\\mu$', '\u03bc': '$\\mu$',
};
const inTex = text => text.replace(/[^\w\s.,:;()[\]/+='"!?*@-]|_/g, one => TEX[one] ?? (one < '\u007f' ? `\\${one}` : '?'));

// A path in TikZ: of lines, and of circles, which are two arcs.
const pathInTex = data => {
    let [x, y, out] = [0, 0, ''];
    for (const [, command, list] of data.matchAll(/([A-Za-z])([^A-Za-z]*)/g)) {
        const numbers = (list.match(/-?[\d.]+/g) ?? []).map(Number);
        if (command === 'z') out += out.endsWith(']') ? '' : ' -- cycle';
        if (command === 'a') {
            const [radius, , , , , along] = numbers;
            if (along > 0) out += ` (${tenth(x + radius)},${tenth(y)}) circle[radius=${radius}]`;
            x += along;
        }
        const [right, down] = { h: [numbers[0], 0], v: [0, numbers[0]] }[command] ?? numbers;
        if ('ML'.includes(command)) [x, y] = [right, down];
        if ('mlhv'.includes(command)) [x, y] = [x + right, y + down];
        if (!'az'.includes(command)) out += `${'Mm'.includes(command) ? ' ' : ' -- '}(${tenth(x)},${tenth(y)})`;
    }
    return out;
};

const pgfFile = svg => {
    const of = (element, name) => element.closest(`[${name}]`)?.getAttribute(name);
    const colour = element => {
        const found = element.closest('.dim') ? '.dim' : `.${element.closest('.k0,.k1,.k2,.k3,.k4,.k5,.k6,.k7')?.classList[0]}`;
        if (found === '.dim') return '#aab1b9';
        return rules.find(rule => rule.selectorText === found)?.style.color ?? '#1d2126';
    };
    const inRgb = (element, name) => {
        const value = of(element, name) === 'currentColor' ? colour(element) : of(element, name);
        const parts = value.startsWith('#') ? value.match(/\w\w/g).map(hex => parseInt(hex, 16)) : value.match(/\d+/g);
        return `{rgb,255:red,${parts[0]};green,${parts[1]};blue,${parts[2]}}`;
    };
    const points = pixels => `${tenth(pixels * POINTS)}pt`;
    const looks = element => ['stroke', 'fill'].flatMap((name, index) => {
        if ((of(element, name) ?? 'none') === 'none') return [];
        const kind = ['draw', 'fill'][index];
        return [`${kind}=${inRgb(element, name)}`, `${kind} opacity=${of(element, `${name}-opacity`) ?? 1}`];
    }).concat(`line width=${points(Number(of(element, 'stroke-width') ?? 1))}`, (of(element, 'stroke-dasharray') ?? 'none') === 'none' ? [] :
        `dash pattern=${of(element, 'stroke-dasharray').split(' ').map((length, index) => `${index ? 'off' : 'on'} ${points(length)}`).join(' ')}`);
    const drawn = {
        line: ({ x1, y1, x2, y2 }) => `(${x1},${y1}) -- (${x2},${y2})`,
        rect: ({ x, y, width, height }) => `(${x},${y}) rectangle (${tenth(Number(x) + Number(width))},${tenth(Number(y) + Number(height))})`,
        path: ({ d }) => pathInTex(d),
    };
    const lines = all('line, rect, path, text', svg).filter(isShown).map(element => {
        const its = Object.fromEntries([...element.attributes].map(({ name, value }) => [name, value]));
        if (element.localName === 'text') {
            const anchor = { middle: 'base', end: 'base east' }[of(element, 'text-anchor')] ?? 'base west';
            const size = Number(of(element, 'font-size'));
            const font = `\\fontsize{${points(size)}}{${points(size * 1.2)}}\\selectfont`;
            return `\\node[anchor=${anchor},inner sep=0pt,font=${font},text=${inRgb(element, 'fill')}] at (${its.x},${its.y}) {${inTex(element.textContent)}};`;
        }
        const path = `\\path[${looks(element).join(',')}] ${drawn[element.localName](its).trim()};`;
        const { left, top, right, bottom } = svg.dataset.box ? plotOf(svg) : {};
        const isCut = element.parentElement.localName === 'svg' && element.parentElement !== svg;
        return isCut ? `\\begin{scope}\\clip (${left},${top}) rectangle (${right},${bottom});\n${path}\n\\end{scope}` : path;
    });
    const { width, height } = svg.viewBox.baseVal;
    return `% \\usepackage{tikz}, then \\input this file; \\resizebox gives it another width.\n\\begin{tikzpicture}[x=${POINTS}pt,y=-${POINTS}pt]\n`
        + `\\useasboundingbox (0,0) rectangle (${width},${height});\n${lines.join('\n')}\n\\end{tikzpicture}\n`;
};

const FILES = { svg: ['image/svg+xml', svgFile], png: ['image/png', pngFile], csv: ['text/csv', csvFile], pgf: ['text/plain', pgfFile] };

// By subject and view, or by its first words; the second of a name has a number.
const nameOf = svg => {
    const { of, view, over } = svg.dataset;
    const said = of ? `${of} ${view}` : over ? `overlay ${over}` : svg.getAttribute('aria-label').split(/[.,]/)[0];
    return said.slice(0, 60).replace(/[^\w]+/g, '-').replace(/-$/, '').toLowerCase();
};
const taken = new Map();

for (const svg of all('figure > svg')) {
    const before = taken.get(nameOf(svg)) ?? 0;
    const name = nameOf(svg) + (before ? `-${before + 1}` : '');
    taken.set(nameOf(svg), before + 1);
    const line = make('p', { class: 'files' }, 'Save as');
    for (const [ending, [type, content]] of Object.entries(FILES)) {
        const button = make('button', { type: 'button', 'aria-label': `save the figure as ${ending.toUpperCase()}` }, ending.toUpperCase());
        button.addEventListener('click', async () => {
            const url = URL.createObjectURL(new Blob([await content(svg)], { type }));
            make('a', { href: url, download: `${name}.${ending}` }).click();
            setTimeout(() => URL.revokeObjectURL(url), 60000);
        });
        line.append(' ', button);
    }
    svg.closest('figure').append(line);
}

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
