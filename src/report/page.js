// SPDX-License-Identifier: MIT
// Draws the report: charts when they come near the window, the search. Labels are text of other people: they reach the
// page through textContent and the canvas, never as HTML.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const root = document.documentElement;
  root.classList.add('js');

  // ---- text

  /** A number for people: 4 significant digits. */
  const shown = (v) => {
    if (v === null) return 'not a number';
    const size = Math.abs(v);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return v.toExponential(3).replace('e+', 'e').replace('-', '\u2212');
    return v.toLocaleString('en-GB', size >= 999.95 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 })
      .replace('-', '\u2212');
  };
  const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
  /** Lower case without accents. */
  const fold = (text) => text.normalize('NFD').replace(/[\u0300-\u036f]/g, '').toLowerCase();
  /** Text in lines of about `width` characters, at most six. */
  const wrapped = (text, width = 42) => {
    const lines = [''];
    for (const word of text.split(' ')) {
      for (let piece = word; piece; piece = piece.slice(width)) {
        const last = lines.length - 1;
        const part = piece.slice(0, width);
        if (lines[last] === '') lines[last] = part;
        else if (lines[last].length + part.length < width) lines[last] += ' ' + part;
        else lines.push(part);
      }
    }
    return lines.length > 6 ? [...lines.slice(0, 6), '\u2026'] : lines;
  };
  /** As much of a text as `width` pixels hold: words lose their end, an address or a path its middle. */
  const fitted = (context, text, width) => {
    if (context.measureText(text).width <= width) return text;
    const characters = Array.from(text);
    const back = text.includes(' ') ? 0 : 0.5;
    const cut = (count) => characters.slice(0, count - Math.floor(back * count)).join('').trimEnd() + '\u2026'
      + characters.slice(characters.length - Math.floor(back * count)).join('');
    let low = 1;
    let high = characters.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(cut(middle)).width <= width) low = middle;
      else high = middle - 1;
    }
    return cut(low);
  };

  // ---- labels

  for (const mode of data.modes) {
    const places = mode.labels && mode.ids ? new Map(mode.ids.map((id, k) => [id, k])) : null;
    mode.label = !mode.labels ? (i) => String(i + 1)
      : places ? (i) => mode.labels[places.get(i)]
        : (i) => mode.labels[i];
    mode.marked = new Set();  // indices that the search found
  }
  const columnOf = (r, m) => data.components[r][m];
  /** Index of the k-th point of a line. */
  const lineIndex = (mode, column, k) =>
    (mode.whole ? (mode.sequence ? mode.sequence[k] : k) : (column.n ? column.n[k] : column.p[k]));

  // ---- colours and what all charts have in common

  const theme = {};
  const readTheme = () => {
    const style = getComputedStyle(root);
    const get = (name) => style.getPropertyValue(name).trim();
    for (const name of ['card', 'ink', 'muted', 'rule', 'grid', 'mark']) theme[name] = get(`--${name}`);
    theme.modes = [0, 1, 2, 3, 4, 5].map((k) => get(`--mode-${k}`));
    Chart.defaults.color = theme.muted;
  };
  const modeColour = (m) => theme.modes[m % theme.modes.length];
  readTheme();
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  Chart.defaults.locale = 'en-GB';
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.plugins.legend.display = false;

  const scale = (extra = {}) => ({
    ...extra,
    grid: { color: () => theme.grid, borderColor: () => theme.rule, drawTicks: false, ...extra.grid },
    ticks: { color: () => theme.muted, padding: 6, maxRotation: 0, ...extra.ticks },
  });
  /** Scale of the values: from 0, and not beyond it for the sake of a few that are next to 0. */
  const valueScale = (values, extra = {}) => {
    const lowest = Math.min(0, ...values);
    const highest = Math.max(0, ...values);
    return scale({
      beginAtZero: true,
      ...(-lowest < 0.03 * highest ? { min: 0 } : highest < -0.03 * lowest ? { max: 0 } : {}),
      ...extra,
      ticks: {
        maxTicksLimit: 5,
        callback(value, k, ticks) {
          return Math.abs(value) >= 1e5 ? value.toLocaleString('en-GB', { notation: 'compact' })
            : Chart.Ticks.formatters.numeric.call(this, value, k, ticks);
        },
        ...extra.ticks,
      },
    });
  };
  const tooltip = (callbacks) => ({
    displayColors: false,
    backgroundColor: () => theme.ink,
    titleColor: () => theme.card,
    bodyColor: () => theme.card,
    padding: 9,
    callbacks,
  });

  // ---- the charts

  const convergence = (canvas) => {
    const { iteration, fit, seconds } = data.history;
    return new Chart(canvas, {
      type: 'line',
      data: {
        datasets: [{
          data: iteration.map((x, k) => ({ x, y: fit[k] })),
          borderColor: () => modeColour(0),
          pointBackgroundColor: () => modeColour(0),
          pointRadius: iteration.length <= 40 ? 2.5 : 0,
          pointHoverRadius: 5,
          clip: 6,
          borderWidth: 2,
        }],
      },
      options: {
        parsing: false,
        interaction: { mode: 'nearest', axis: 'x', intersect: false },
        scales: {
          x: scale({
            type: 'linear', min: iteration[0], max: Math.max(iteration[iteration.length - 1], iteration[0] + 1),
            title: { display: true, text: 'iteration', color: () => theme.muted },
            grid: { display: false }, ticks: { precision: 0, includeBounds: false },
          }),
          y: scale({ ticks: { maxTicksLimit: 6 }, grace: '5%' }),
        },
        plugins: {
          tooltip: tooltip({
            title: (items) => `iteration ${iteration[items[0].dataIndex]}`,
            label: (item) => [`fit ${fit[item.dataIndex] === null ? 'not a number' : fit[item.dataIndex].toFixed(5)}`,
              `after ${shown(seconds[item.dataIndex])} s`],
          }),
        },
      },
    });
  };

  const weights = (canvas) => new Chart(canvas, {
    type: 'bar',
    data: {
      labels: data.weights.map((_, r) => String(r + 1)),
      datasets: [{
        data: data.weights,
        backgroundColor: (c) => (panels[c.dataIndex].classList.contains('strong') ? theme.mark : modeColour(0)),
        borderRadius: 2,
        maxBarThickness: 44,
      }],
    },
    options: {
      interaction: { mode: 'index', intersect: false },
      onClick: (_, items) => { if (items.length) show(items[0].index); },
      onHover: (event, items) => { event.native.target.style.cursor = items.length ? 'pointer' : ''; },
      scales: {
        x: scale({ grid: { display: false }, title: { display: true, text: 'component', color: () => theme.muted } }),
        y: valueScale(data.weights, { ticks: { maxTicksLimit: 6 } }),
      },
      plugins: {
        tooltip: tooltip({
          title: (items) => `component ${items[0].dataIndex + 1}`,
          label: (item) => [`weight ${shown(data.weights[item.dataIndex])}`,
            `${percent(data.shares[item.dataIndex])} of all weights`],
        }),
      },
    },
  });

  /** Labels of bars answer to the pointer like the bars: that is where a shortened one is read in full. */
  const labelsAnswer = {
    id: 'labelsAnswer',
    beforeEvent(chart, args) {
      const { left, top, bottom } = chart.chartArea;
      const { event } = args;
      if (event.x === null || event.x >= left || event.y < top || event.y > bottom) return;
      event.x = left + 1;
      args.inChartArea = true;
    },
  };

  const bars = (canvas, r, m) => {
    const mode = data.modes[m];
    const column = columnOf(r, m);
    const count = Math.min(data.top, column.i.length);
    const values = column.v.slice(0, count);
    const signed = values.some((v) => v < 0);
    return new Chart(canvas, {
      type: 'bar',
      plugins: [labelsAnswer],
      data: {
        labels: column.i.slice(0, count).map(mode.label),
        datasets: [{
          data: values,
          backgroundColor: (c) => (mode.marked.has(column.i[c.dataIndex]) ? theme.mark
            : modeColour(m) + (values[c.dataIndex] < 0 ? '99' : '')),
          borderRadius: 2,
          categoryPercentage: 0.92,
          barPercentage: 0.85,
          maxBarThickness: 22,
          minBarLength: 1,
        }],
      },
      options: {
        indexAxis: 'y',
        interaction: { mode: 'index', axis: 'y', intersect: false },
        scales: {
          x: valueScale(values),
          y: scale({
            grid: { display: false },
            ticks: {
              autoSkip: false,
              color: (c) => (mode.marked.has(column.i[c.index]) ? theme.mark : theme.ink),
              callback(value) { return fitted(this.ctx, this.getLabelForValue(value), 0.4 * this.chart.width); },
            },
          }),
        },
        plugins: {
          tooltip: tooltip({
            title: (items) => wrapped(mode.label(column.i[items[0].dataIndex])),
            label: (item) => `${shown(values[item.dataIndex])}, rank ${item.dataIndex + 1}`,
          }),
        },
        layout: { padding: { right: signed ? 2 : 8 } },
      },
    });
  };

  const line = (canvas, r, m) => {
    const mode = data.modes[m];
    const column = columnOf(r, m);
    const x = (index, place) => (mode.numbers ? Number(mode.label(index)) : place);
    const points = column.y.map((y, k) => {
      const index = lineIndex(mode, column, k);
      return { x: x(index, mode.whole ? k : column.p[k]), y, index };
    });
    const ticks = mode.ticks.map((place, k) => {
      const index = mode.tickIds ? mode.tickIds[k] : place;
      return { value: x(index, place), label: mode.label(index) };
    });
    const isMarked = (c) => c.raw !== undefined && mode.marked.has(c.raw.index);
    const few = points.length <= 31;
    return new Chart(canvas, {
      type: 'line',
      data: {
        datasets: [{
          data: points,
          borderColor: () => modeColour(m),
          backgroundColor: () => modeColour(m) + '26',
          fill: 'origin',
          borderWidth: few ? 2 : 1.5,
          borderJoinStyle: 'round',
          pointRadius: (c) => (isMarked(c) ? 5 : few ? 2.5 : 0),
          pointBackgroundColor: (c) => (isMarked(c) ? theme.mark : modeColour(m)),
          pointBorderWidth: 0,
          pointHoverRadius: 5,
          clip: 6,
        }],
      },
      options: {
        parsing: false,
        interaction: { mode: 'nearest', axis: 'x', intersect: false },
        scales: {
          x: scale({
            type: 'linear', min: ticks[0].value, max: ticks[ticks.length - 1].value, grid: { display: false },
            afterBuildTicks: mode.numbers ? undefined : (axis) => { axis.ticks = ticks.map(({ value }) => ({ value })); },
            ticks: {
              includeBounds: false,
              autoSkipPadding: 14,
              callback: mode.numbers ? (v) => String(Number(v.toPrecision(10)))
                : (v) => ticks.find((tick) => tick.value === v)?.label.slice(0, 16) ?? '',
            },
          }),
          y: valueScale(column.y),
        },
        plugins: {
          tooltip: tooltip({
            title: (items) => wrapped(mode.label(items[0].raw.index)),
            label: (item) => shown(item.raw.y),
          }),
        },
      },
    });
  };

  // ---- drawn when near, forgotten when far: phones have little memory for canvases

  const panels = [...document.querySelectorAll('.component')];
  const canvases = [...document.querySelectorAll('.chart canvas')];
  const rows = Math.max(0, ...data.components.flatMap((columns) =>
    columns.map((column, m) => (data.modes[m].line ? 0 : Math.min(data.top, column.i.length)))));
  const setHeight = (canvas) => {
    const { component, mode } = canvas.dataset;
    const printing = root.classList.contains('printing');
    const rowHeight = printing ? 16 : 22;
    const ofRows = (count) => count * rowHeight + 34;
    const height = component === undefined ? (printing ? 180 : 230)
      : data.modes[mode].line ? ofRows(Math.min(12, Math.max(8, rows)))
        : ofRows(Math.min(data.top, columnOf(component, mode).i.length));
    canvas.parentElement.style.height = `${height}px`;
  };
  canvases.forEach(setHeight);
  const draw = (canvas) => {
    if (Chart.getChart(canvas)) return;
    const { component, mode } = canvas.dataset;
    if (canvas.id === 'convergence') convergence(canvas);
    else if (canvas.id === 'weights') weights(canvas);
    else (data.modes[mode].line ? line : bars)(canvas, Number(component), Number(mode));
  };
  const near = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        near.add(target);
        draw(target);
      } else {
        near.delete(target);
        if (!root.classList.contains('printing')) Chart.getChart(target)?.destroy();
      }
    }
  }, { rootMargin: '800px 0px' });
  canvases.forEach((canvas) => observer.observe(canvas));
  const redraw = () => { for (const chart of Object.values(Chart.instances)) chart.update('none'); };

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readTheme(); redraw(); });
  /** On paper: all charts, in light colours, sharp. */
  const forPaper = (printing) => {
    root.classList.toggle('printing', printing);
    readTheme();
    Chart.defaults.font.size = printing ? 10 : 12;
    if (printing && canvases.length <= 300) Chart.defaults.devicePixelRatio = 2;
    else delete Chart.defaults.devicePixelRatio;
    for (const canvas of canvases) {
      Chart.getChart(canvas)?.destroy();
      setHeight(canvas);
      if (printing || near.has(canvas)) draw(canvas);
    }
  };
  addEventListener('beforeprint', () => forPaper(true));
  addEventListener('afterprint', () => forPaper(false));

  // ---- the search

  const input = document.getElementById('search');
  const status = document.getElementById('search-status');
  const results = document.getElementById('search-results');
  const chips = [...document.querySelectorAll('nav a')];
  const mostResults = 30;
  const mostHits = 12;

  /** Element with text; nothing here ever reads HTML. */
  const element = (tag, text = '', className = '') => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.textContent = text;
    return made;
  };

  /** Per mode: labels and, for each, where it is: component, rank from 1, value; largest first. Made when first asked. */
  let index = null;
  const buildIndex = () => data.modes.map((mode, m) => {
    const entries = new Map();
    data.components.forEach((columns, r) => {
      const column = columns[m];
      let ids = column.i;
      let values = column.v;
      if (mode.whole) {
        const places = [...column.y.keys()].filter((k) => column.y[k]);
        places.sort((a, b) => Math.abs(column.y[b]) - Math.abs(column.y[a]) || a - b);
        ids = places.map((k) => lineIndex(mode, column, k));
        values = places.map((k) => column.y[k]);
      }
      ids.forEach((id, k) => {
        if (!entries.has(id)) entries.set(id, { mode: m, id, label: mode.label(id), folded: fold(mode.label(id)), hits: [] });
        entries.get(id).hits.push({ component: r, rank: k + 1, value: values[k] });
      });
    });
    for (const entry of entries.values()) {
      entry.hits.sort((a, b) => Math.abs(b.value) - Math.abs(a.value) || a.component - b.component);
    }
    return [...entries.values()];
  }).flat();

  const quality = (folded, query) => (folded === query ? 0 : folded.startsWith(query) ? 1 : folded.includes(' ' + query) ? 2 : 3);

  const find = (query) => {
    index ??= buildIndex();
    const found = index.filter((entry) => entry.folded.includes(query));
    for (const entry of found) entry.quality = quality(entry.folded, query);
    return found.sort((a, b) => a.quality - b.quality
      || Math.abs(b.hits[0].value) - Math.abs(a.hits[0].value) || a.mode - b.mode || a.id - b.id);
  };

  const show = (component) => {
    results.hidden = true;
    panels[component].scrollIntoView({ block: 'start' });
    panels[component].focus({ preventScroll: true });
  };

  const hitLink = (hit) => {
    const link = element('a', `component ${hit.component + 1}: rank ${hit.rank}, ${shown(hit.value)}`);
    link.href = `#component-${hit.component + 1}`;
    link.addEventListener('click', (event) => {
      event.preventDefault();
      show(hit.component);
    });
    const item = element('li');
    item.append(link);
    return item;
  };

  let best = null;
  const search = () => {
    const query = fold(input.value.trim());
    const found = query ? find(query) : [];
    const listed = found.slice(0, mostResults);
    best = listed.length ? listed[0].hits[0].component : null;

    results.replaceChildren(...listed.map((entry) => {
      const result = element('div', '', 'result');
      const head = element('p');
      head.append(element('b', entry.label), ' ', element('span', data.modes[entry.mode].name, 'about'));
      const list = element('ul');
      list.append(...entry.hits.slice(0, mostHits).map(hitLink));
      if (entry.hits.length > mostHits) list.append(element('li', `and ${entry.hits.length - mostHits} more`, 'about'));
      result.append(head, list);
      return result;
    }));
    if (found.length > listed.length)
      results.append(element('p', `and ${found.length - listed.length} more labels`, 'result about'));
    results.hidden = !listed.length;

    for (const mode of data.modes) mode.marked.clear();
    const inPanel = panels.map(() => []);
    const strong = new Set();  // panels that show one of them among their largest
    for (const entry of listed) {
      data.modes[entry.mode].marked.add(entry.id);
      for (const hit of entry.hits) {
        inPanel[hit.component].push(`${entry.label}: rank ${hit.rank}, ${shown(hit.value)}`);
        if (hit.rank <= data.top) strong.add(hit.component);
      }
    }
    panels.forEach((panel, r) => {
      const texts = inPanel[r];
      for (const marked of [panel, chips[r]]) {
        marked.classList.toggle('match', texts.length > 0);
        marked.classList.toggle('strong', strong.has(r));
      }
      const note = panel.querySelector('.found');
      note.hidden = !texts.length;
      note.textContent = texts.slice(0, 4).join(' \u00b7 ') + (texts.length > 4 ? ` \u00b7 and ${texts.length - 4} more` : '');
    });
    const marked = inPanel.filter((texts) => texts.length).length;
    status.textContent = !query ? ''
      : !found.length ? `No label has this among the ${status.dataset.searched} largest of every component and mode.`
        : `${found.length} label${found.length === 1 ? '' : 's'}, in ${marked} of ${panels.length} components`;
    redraw();
  };

  input.addEventListener('input', search);
  input.addEventListener('focus', () => { results.hidden = !results.childElementCount; });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && best !== null) show(best);
    if (event.key === 'Escape') {
      input.value = '';
      search();
    }
  });
  document.addEventListener('click', (event) => {
    if (!event.target.closest('.search')) results.hidden = true;
  });
  document.querySelector('.search').addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      results.hidden = true;
      input.focus();
      results.hidden = true;
    }
  });
  if (input.value) search();  // kept by the browser when it came back to the page
})();
