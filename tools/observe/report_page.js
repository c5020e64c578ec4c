'use strict';

// Draws the report of a run from the JSON in the element "data". Whatever is in there is put on the
// page as text (textContent) alone: names of tasks and files are anybody's bytes.

const data = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');

// ---- words and numbers

function isNumber(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

// Of what is not known nothing is known in other units either.
function fromMicroseconds(us) {
  return isNumber(us) ? us / 1e6 : null;
}

function seconds(value) {
  if (!isNumber(value)) return '-';
  const digits = Math.abs(value) >= 100 ? 1 : 3;
  return value.toFixed(digits) + ' s';
}

function shortTime(us) {
  if (!isNumber(us)) return '-';
  if (us < 1e3) return us.toPrecision(3) + ' us';
  if (us < 1e6) return (us / 1e3).toPrecision(3) + ' ms';
  return (us / 1e6).toPrecision(4) + ' s';
}

function bytes(value) {
  if (!isNumber(value)) return '-';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return (unit === 0 ? value.toFixed(0) : value.toPrecision(value < 1000 ? 3 : 4)) + ' ' + units[unit];
}

function count(value) {
  return isNumber(value) ? value.toLocaleString('en-US') : '-';
}

function share(value) {
  if (!isNumber(value)) return '-';
  const text = (value * 100).toFixed(1);
  return (value > 0 && text !== '0.0' ? '+' : '') + (text === '-0.0' ? '0.0' : text) + ' %';
}

function when(epochSeconds) {
  const date = new Date(epochSeconds * 1000);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
}

// ---- elements

function element(name, options = {}, children = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === 'text') made.textContent = value;
    else if (key === 'class') made.className = value;
    else if (key === 'style') made.style.cssText = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function svg(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function section(name, lead) {
  const id = 'section-' + page.childElementCount;
  const made = element('section', {id});
  made.append(element('h2', {text: name}));
  if (lead) made.append(element('p', {class: 'faint', text: lead}));
  page.append(made);
  document.getElementById('contents').append(element('a', {href: '#' + id, text: name}), ' ');
  return made;
}

// Columns are [heading, cell(row), class]. A cell is a text or a node.
function table(columns, rows) {
  const head = element('tr', {}, columns.map(([name, , style]) => element('th', {text: name, class: style || ''})));
  const body = rows.map((row) => element('tr', {}, columns.map(([, cell, style]) => {
    const value = cell(row);
    return value instanceof Node ? element('td', {class: style || ''}, [value])
                                 : element('td', {text: value, class: style || ''});
  })));
  const made = element('table', {}, [element('thead', {}, [head]), element('tbody', {}, body)]);
  return element('div', {class: 'scroll'}, [made]);
}

// The first rows, and the others when they are asked for.
function longTable(columns, rows, shown) {
  const made = element('div', {}, [table(columns, rows.slice(0, shown))]);
  if (rows.length <= shown) return made;
  const rest = element('details', {}, [element('summary', {text: `${count(rows.length - shown)} more`})]);
  rest.addEventListener('toggle', () => {
    if (rest.open && rest.childElementCount === 1) rest.append(table(columns, rows.slice(shown)));
  });
  made.append(rest);
  return made;
}

const tip = document.getElementById('tip');
function showTip(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 16;
  const fits = below + tip.offsetHeight < window.innerHeight;
  tip.style.left = Math.max(4, x) + 'px';
  tip.style.top = Math.max(4, fits ? below : event.clientY - tip.offsetHeight - 10) + 'px';
}

// ---- colours of stages

const kColours = ['#3b82c4', '#e08a1e', '#3f9d5b', '#b5589f', '#8a6d3b', '#c8493f', '#3aa6a6', '#7a6bc9', '#8a9a1f', '#d77ba0'];
const stageNames = data.tasks.stages || [];
const stageColours = new Map(data.stages.map((stage, i) => [
  stage.name, i < kColours.length ? kColours[i] : `hsl(${(i * 137.5) % 360} 50% 52%)`]));
function colourOf(stageName) {
  return stageColours.get(stageName) || '#888888';
}

// ---- the timeline

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Gives each bar of a host the first lane in which nothing else is at the time; how many lanes
// there are. Bars are sorted by their start.
function assignLanes(bars) {
  const ends = [];
  for (const bar of bars) {
    let lane = ends.findIndex((end) => end <= bar.start + 1);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = bar.start + bar.took;
    bar.lane = lane;
  }
  return ends.length;
}

// Of each host the bars measured and predicted.
function barsByHost() {
  const hosts = data.hosts.map((host) => ({host, measured: [], predicted: []}));
  const tasks = data.tasks;
  const length = (tasks.id || []).length;
  for (let i = 0; i < length; ++i) {
    const host = tasks.host[i];
    if (host !== null && tasks.start_us[i] !== null)
      hosts[host].measured.push({task: i, start: tasks.start_us[i], took: tasks.took_us[i]});
    if (tasks.predicted_host && tasks.predicted_host[i] !== null && tasks.predicted_host[i] < hosts.length)
      hosts[tasks.predicted_host[i]].predicted.push(
          {task: i, start: tasks.predicted_start_us[i], took: tasks.predicted_took_us[i]});
  }
  for (const failure of data.failed) {
    if (failure.host !== null && failure.start_us !== null)
      hosts[failure.host].measured.push({failure, start: failure.start_us, took: failure.took_us});
  }
  for (const host of hosts) {
    // An attempt that failed and was the last is both: the failure is what is to be seen.
    const failed = new Set(host.measured.filter((bar) => bar.failure).map((bar) => bar.start + ':' + bar.failure.id));
    host.measured = host.measured.filter((bar) => bar.failure || !failed.has(bar.start + ':' + tasks.id[bar.task]));
    for (const bars of [host.measured, host.predicted]) bars.sort((a, b) => a.start - b.start || b.took - a.took);
    host.measuredLanes = assignLanes(host.measured);
    host.predictedLanes = assignLanes(host.predicted);
  }
  return hosts;
}

class Timeline {
  constructor(hosts) {
    this.hosts = hosts;
    this.canvas = element('canvas', {'aria-label': 'Tasks by host and time, measured over predicted'});
    this.end = 1;
    for (const host of hosts)
      for (const bars of [host.measured, host.predicted])
        for (const bar of bars) this.end = Math.max(this.end, bar.start + bar.took);
    if (isNumber(data.turnaround_s)) this.end = Math.max(this.end, data.turnaround_s * 1e6);
    this.from = 0;
    this.to = this.end;
    this.stage = null;
    this.wanted = '';
    this.layOut();
    this.listen();
  }

  layOut() {
    const lanes = this.hosts.reduce((sum, host) => sum + host.measuredLanes + host.predictedLanes, 0);
    this.laneHeight = Math.max(2, Math.min(16, Math.floor(900 / Math.max(1, lanes))));
    this.top = 24;
    let y = this.top;
    for (const host of this.hosts) {
      host.y = y;
      host.predictedY = y + Math.max(1, host.measuredLanes) * this.laneHeight + 1;
      y = Math.max(host.predictedY + host.predictedLanes * this.laneHeight, host.y + 14) + 7;
    }
    this.height = y;
    this.canvas.style.height = y + 'px';
    this.left = 18 + Math.min(150, 7 * Math.max(2, ...this.hosts.map((host) => host.host.name.length + (host.host.lost ? 5 : 0))));
  }

  xOf(us) {
    return this.left + (us - this.from) / (this.to - this.from) * (this.width - this.left - 4);
  }

  usOf(x) {
    return this.from + (x - this.left) / (this.width - this.left - 4) * (this.to - this.from);
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    this.width = Math.max(300, this.canvas.clientWidth);
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const pen = this.canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = cssColour('--paper');
    pen.fillRect(0, 0, this.width, this.height);
    this.drawAxis(pen);
    this.offColour = cssColour('--off');
    this.inkColour = cssColour('--ink');
    this.panelColour = cssColour('--panel');
    for (const host of this.hosts) this.drawHost(pen, host);
    this.drawEnds(pen);
  }

  drawAxis(pen) {
    const span = this.to - this.from;
    let step = Math.pow(10, Math.floor(Math.log10(span / 8)));
    for (const factor of [2, 5, 10]) if (span / step > 12) step *= factor / (factor === 2 ? 1 : factor === 5 ? 2 : 5);
    pen.font = '11px system-ui, sans-serif';
    pen.textBaseline = 'top';
    pen.textAlign = 'center';
    const digits = Math.max(0, Math.min(6, 6 - Math.floor(Math.log10(step) + 1e-9)));
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.xOf(at)) + 0.5;
      pen.strokeStyle = cssColour('--line');
      pen.beginPath();
      pen.moveTo(x, 18);
      pen.lineTo(x, this.height);
      pen.stroke();
      pen.fillStyle = cssColour('--faint');
      if (x < this.width - 20) pen.fillText((at / 1e6).toFixed(digits) + ' s', x, 4);
    }
  }

  drawHost(pen, host) {
    pen.textAlign = 'right';
    pen.textBaseline = 'top';
    pen.font = '12px system-ui, sans-serif';
    pen.fillStyle = host.host.lost ? this.offColour : this.inkColour;
    pen.fillText(host.host.name + (host.host.lost ? ' lost' : ''), this.left - 10, host.y + 1, this.left - 12);
    pen.fillStyle = this.panelColour;
    const bottom = host.predictedY + host.predictedLanes * this.laneHeight;
    pen.fillRect(this.left, host.y, this.width - this.left - 4, bottom - host.y);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width - this.left - 4, this.height);
    pen.clip();
    this.drawBars(pen, host.measured, host.y, 1);
    this.drawBars(pen, host.predicted, host.predictedY, 0.42);
    pen.restore();
  }

  // What would be narrower than a pixel beside its neighbour is left out.
  drawBars(pen, bars, y, strength) {
    const drawnTo = [];
    const gap = this.laneHeight > 5 ? 1 : 0;
    for (const bar of bars) {
      if (bar.start + bar.took < this.from || bar.start > this.to) continue;
      const x = this.xOf(bar.start);
      const width = Math.max(1, this.xOf(bar.start + bar.took) - x - (this.laneHeight > 5 ? 0.5 : 0));
      const found = this.isFound(bar);
      if (!found && !bar.failure && x + width <= (drawnTo[bar.lane] || -1)) continue;
      drawnTo[bar.lane] = Math.ceil(x + width);
      const stage = bar.failure ? null : stageNames[data.tasks.stage[bar.task]];
      pen.globalAlpha = (this.stage !== null && stage !== this.stage) || (this.wanted && !found) ? strength * 0.15 : strength;
      pen.fillStyle = bar.failure ? this.offColour : colourOf(stage);
      pen.fillRect(x, y + bar.lane * this.laneHeight, width, this.laneHeight - gap);
      if (found && this.wanted) {
        pen.globalAlpha = 1;
        pen.strokeStyle = this.inkColour;
        pen.strokeRect(x, y + bar.lane * this.laneHeight, Math.max(width, 2), this.laneHeight - gap);
      }
    }
    pen.globalAlpha = 1;
  }

  drawEnds(pen) {
    const line = (endS, dashes) => {
      const us = isNumber(endS) ? endS * 1e6 : NaN;
      if (!isNumber(us) || us < this.from || us > this.to) return;
      pen.strokeStyle = this.inkColour;
      pen.setLineDash(dashes);
      pen.beginPath();
      pen.moveTo(this.xOf(us) - 0.5, 18);
      pen.lineTo(this.xOf(us) - 0.5, this.height);
      pen.stroke();
      pen.setLineDash([]);
    };
    line(data.turnaround_s, []);
    line(data.predicted_s, [5, 4]);
  }

  isFound(bar) {
    if (!this.wanted) return false;
    return (bar.failure ? bar.failure.id : data.tasks.id[bar.task]).toLowerCase().includes(this.wanted);
  }

  barAt(x, y) {
    const slack = (this.to - this.from) / this.width;
    const us = this.usOf(x);
    for (const host of this.hosts) {
      for (const [bars, top, lanes, isPredicted] of [[host.measured, host.y, host.measuredLanes, false],
                                                    [host.predicted, host.predictedY, host.predictedLanes, true]]) {
        const lane = Math.floor((y - top) / this.laneHeight);
        if (lane < 0 || lane >= lanes) continue;
        const hit = bars.find((bar) => bar.lane === lane && us >= bar.start - slack && us <= bar.start + bar.took + slack);
        if (hit) return {bar: hit, host, isPredicted};
      }
    }
    return null;
  }

  describe({bar, host, isPredicted}) {
    const head = (isPredicted ? 'predicted: ' : '') + (bar.failure ? bar.failure.id : data.tasks.id[bar.task]);
    const time = `${host.host.name}, from ${seconds(bar.start / 1e6)} for ${seconds(bar.took / 1e6)}`;
    if (bar.failure) return `${head}\n${time}\nfailed: ${bar.failure.failure}`;
    const tasks = data.tasks;
    const i = bar.task;
    if (isPredicted) {
      const measured = tasks.start_us[i] === null ? '' : `\nmeasured: from ${seconds(tasks.start_us[i] / 1e6)} for ${seconds(tasks.took_us[i] / 1e6)}`;
      return `${head}\n${time}${measured}`;
    }
    const lines = [head, `${stageNames[tasks.stage[i]]}, ${tasks.states[tasks.state[i]]}`, time];
    if (tasks.predicted_took_us && tasks.predicted_took_us[i] !== null)
      lines.push(`predicted: ${data.hosts[tasks.predicted_host[i]].name}, from ${seconds(tasks.predicted_start_us[i] / 1e6)} for ${seconds(tasks.predicted_took_us[i] / 1e6)}`);
    lines.push(`read ${bytes(tasks.local[i])} of its own node, ${bytes(tasks.elsewhere[i])} of others; wrote ${bytes(tasks.written[i])}`);
    if (tasks.reasons[tasks.placed[i]]) lines.push(`here because: ${tasks.reasons[tasks.placed[i]]}`);
    if (tasks.attempts[i] > 1) lines.push(`attempt ${tasks.attempts[i]}`);
    return lines.join('\n');
  }

  zoom(factor, x) {
    const at = x === undefined ? (this.from + this.to) / 2 : this.usOf(x);
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  show(from, to) {
    const span = Math.min(this.end, Math.max(100, to - from));
    this.from = Math.max(0, Math.min(from, this.end - span));
    this.to = this.from + span;
    this.redraw();
  }

  // Once for each picture that the screen shows.
  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  listen() {
    const canvas = this.canvas;
    let dragged = null;
    canvas.addEventListener('pointerdown', (event) => {
      dragged = {x: event.offsetX, from: this.from, to: this.to};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', () => { dragged = null; });
    canvas.addEventListener('pointermove', (event) => {
      if (dragged) {
        const moved = (dragged.x - event.offsetX) / (this.width - this.left - 4) * (dragged.to - dragged.from);
        this.show(dragged.from + moved, dragged.to + moved);
        return showTip(event, '');
      }
      const hit = this.barAt(event.offsetX, event.offsetY);
      showTip(event, hit ? this.describe(hit) : '');
    });
    canvas.addEventListener('pointerleave', (event) => showTip(event, ''));
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX);
    }, {passive: false});
    canvas.addEventListener('dblclick', (event) => this.zoom(0.4, event.offsetX));
    window.addEventListener('resize', () => this.redraw());
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
    // Paper is white.
    window.addEventListener('beforeprint', () => {
      document.documentElement.classList.add('on-paper');
      this.draw();
    });
    window.addEventListener('afterprint', () => {
      document.documentElement.classList.remove('on-paper');
      this.draw();
    });
  }

  controls() {
    const button = (text, action) => {
      const made = element('button', {type: 'button', text});
      made.addEventListener('click', action);
      return made;
    };
    const find = element('input', {type: 'search', placeholder: 'find tasks', 'aria-label': 'find tasks'});
    find.addEventListener('input', () => {
      this.wanted = find.value.toLowerCase();
      this.redraw();
    });
    return element('div', {class: 'controls'}, [
      button('Closer', () => this.zoom(0.5)), button('Further', () => this.zoom(2)), button('All', () => this.show(0, this.end)), find,
      element('span', {class: 'faint', text: 'Drag to move, Ctrl and wheel or double click to come closer, point at a bar for its task.'})]);
  }

  legend() {
    const parts = data.stages.map((stage) => {
      const made = element('span', {}, [element('i', {style: `background: ${colourOf(stage.name)}`}), stage.name]);
      made.addEventListener('pointerenter', () => { this.stage = stage.name; this.redraw(); });
      made.addEventListener('pointerleave', () => { this.stage = null; this.redraw(); });
      return made;
    });
    if (data.failed.length > 0)
      parts.push(element('span', {}, [element('i', {style: 'background: var(--off)'}), 'failed attempt']));
    return element('div', {class: 'legend'}, parts);
  }
}

function drawTimeline() {
  const isPredicted = Boolean(data.tasks.predicted_host);
  const made = section('Timeline', isPredicted
      ? 'Of each host above what was measured, below and paler what was predicted. The line is the end of the run, the dashed line its predicted end.'
      : 'Of each host the tasks that it ran. Nothing is predicted: see Not compared.');
  const timeline = new Timeline(barsByHost());
  made.append(timeline.legend(), timeline.controls(), timeline.canvas);
  timeline.draw();
}

// ---- stages

// Predicted nine of ten as a band with its median, measured as a dot with its range.
function intervalPicture(cell, most) {
  const width = 260;
  const x = (value) => (3 + value / most * (width - 6)).toFixed(1);
  const made = svg('svg', {width, height: 16, viewBox: `0 0 ${width} 16`, role: 'img'});
  made.append(svg('line', {x1: 0, x2: width, y1: 8, y2: 8, stroke: 'var(--line)'}));
  if (cell.predicted_interval_s) {
    const [low, high] = cell.predicted_interval_s;
    made.append(svg('rect', {x: x(low), y: 3, width: Math.max(1, x(high) - x(low)), height: 10, fill: 'rgba(var(--heat), 0.35)'}));
  }
  if (isNumber(cell.predicted_s))
    made.append(svg('line', {x1: x(cell.predicted_s), x2: x(cell.predicted_s), y1: 1, y2: 15, stroke: 'var(--accent)', 'stroke-width': 2}));
  if (isNumber(cell.measured_s)) {
    const colour = cell.verdict === 'slower' ? 'var(--off)' : 'var(--ink)';
    const [low, high] = cell.measured_range_s;
    made.append(svg('line', {x1: x(low), x2: x(high), y1: 8, y2: 8, stroke: colour, 'stroke-width': 2}));
    made.append(svg('circle', {cx: x(cell.measured_s), cy: 8, r: 3.5, fill: colour}));
  }
  return made;
}

function range(interval) {
  return interval ? `${interval[0].toFixed(3)} to ${interval[1].toFixed(3)}` : '-';
}

function drawCompared() {
  if (!data.comparison) return;
  const comparison = data.comparison;
  const runs = comparison.judged.length;
  const made = section('Measured beside predicted',
      `The dot is measured (the median of the last ${runs === 1 ? 'run' : runs + ' runs'}, and their range), the line predicted, the band where nine of ten runs are predicted to be. Rows of one kind have one scale.`);
  const most = {};
  for (const cell of comparison.cells) {
    const values = [cell.predicted_s, cell.measured_s, ...(cell.predicted_interval_s || []), ...(cell.measured_range_s || [])];
    most[cell.level] = Math.max(most[cell.level] || 1e-6, ...values.filter(isNumber));
  }
  const columns = [
    ['What', (cell) => cell.level], ['Name', (cell) => cell.name],
    ['Measured', (cell) => seconds(cell.measured_s), 'number'], ['Predicted', (cell) => seconds(cell.predicted_s), 'number'],
    ['Nine of ten', (cell) => range(cell.predicted_interval_s), 'number'], ['', (cell) => intervalPicture(cell, most[cell.level])],
    ['Off by', (cell) => share(cell.residual_share), 'number'],
    ['Of the run\'s time', (cell) => share(cell.effect_share), 'number'],
    ['Verdict', (cell) => element('span', {text: cell.verdict, class: cell.verdict === 'slower' ? 'off' : cell.verdict === 'as predicted' ? 'well' : ''})]];
  made.append(longTable(columns, comparison.cells, 60));
  const moved = [...comparison.stage_bytes.map((row) => ({...row, what: 'stage'})),
                 ...comparison.link_bytes.map((row) => ({...row, what: 'link'}))];
  if (moved.length === 0) return;
  made.append(element('h3', {text: 'Bytes on other nodes than the task'}));
  made.append(longTable([
    ['What', (row) => row.what], ['Name', (row) => row.name], ['Measured', (row) => bytes(row.measured_bytes), 'number'],
    ['Predicted', (row) => bytes(row.predicted_bytes), 'number'],
    ['Range of the draws', (row) => row.predicted_range_bytes.map(bytes).join(' to '), 'number'],
    ['', (row) => element('span', {text: row.off ? 'elsewhere' : 'as predicted', class: row.off ? 'off' : 'well'})]], moved, 40));
}

function drawStages() {
  const made = section('Stages');
  made.append(longTable([
    ['Stage', (stage) => element('span', {}, [element('i', {style: `display:inline-block;width:10px;height:10px;margin-right:6px;background:${colourOf(stage.name)}`}), stage.name])],
    ['Tasks', (stage) => stage.done === stage.tasks ? count(stage.tasks) : `${count(stage.done)} of ${count(stage.tasks)} done`, 'number'],
    ['From', (stage) => seconds(stage.begin_s), 'number'], ['Took', (stage) => seconds(stage.seconds), 'number'],
    ['Mean task', (stage) => seconds(stage.mean_s), 'number'], ['Longest task', (stage) => seconds(stage.longest_s), 'number'],
    ['which is', (stage) => stage.longest || '-'],
    ['Read of own node', (stage) => bytes(stage.local), 'number'], ['of others', (stage) => bytes(stage.elsewhere), 'number'],
    ['Written', (stage) => bytes(stage.written), 'number']], data.stages, 40));
}

// ---- what is found

function drawCause(cause) {
  const witnesses = cause.witnesses.map((text) => element('li', {text}));
  return element('li', {}, [element('p', {text: cause.sentence}), element('ul', {class: 'faint'}, witnesses),
                            element('p', {text: `Open first: ${cause.open_first}.`})]);
}

function drawFinding() {
  if (!data.comparison || !data.comparison.finding.is_slower) return;
  const finding = data.comparison.finding;
  const made = section('Slower', finding.sentence);
  if (finding.causes.length > 0) made.append(element('ol', {class: 'causes'}, finding.causes.map(drawCause)));
  else if (finding.is_replayed) made.append(element('p', {text: 'No single part explains a quarter of that.'}));
}

function drawFailures() {
  if (data.failed.length === 0) return;
  const made = section('Failed attempts');
  made.append(longTable([
    ['Task', (row) => row.id], ['Host', (row) => row.host === null ? '-' : data.hosts[row.host].name],
    ['From', (row) => seconds(fromMicroseconds(row.start_us)), 'number'], ['After', (row) => seconds(fromMicroseconds(row.took_us)), 'number'],
    ['Why', (row) => row.failure]], data.failed, 20));
}

function drawNotes() {
  const made = section('Not compared, and what to mind');
  if (data.notes.length === 0) return made.append(element('p', {text: 'Nothing.'}));
  made.append(element('ul', {class: 'notes'}, data.notes.map((note) => element('li', {text: note}))));
}

// ---- where bytes lay

// Names of hosts, then of nodes that are none, as far as any of the matrices has them.
function nodesOf(...matrices) {
  const names = new Set();
  for (const matrix of matrices)
    for (const row of Object.values(matrix || {})) for (const node of Object.keys(row)) names.add(node);
  const hosts = data.hosts.map((host) => host.name);
  return [...hosts, ...[...names].filter((name) => !hosts.includes(name)).sort()];
}

// A cell is {value, strength from 0 to 1, below, title}.
function heatTable(corner, columns, rows, cellOf) {
  const head = element('tr', {}, [element('th', {text: corner}), ...columns.map((name) => element('th', {text: name, class: 'number host'}))]);
  const body = rows.map((row) => element('tr', {}, [element('th', {text: row, class: 'host'}), ...columns.map((column) => {
    const cell = cellOf(row, column);
    const made = element('td', {class: 'heat', title: cell.title || '', style: `background: rgba(var(--heat), ${(cell.strength * 0.6).toFixed(3)})`});
    made.append(cell.text);
    if (cell.below) made.append(element('small', {text: cell.below}));
    return made;
  })]));
  return element('div', {class: 'scroll'}, [element('table', {}, [element('thead', {}, [head]), element('tbody', {}, body)])]);
}

function drawPlacement() {
  const made = section('Placement map', 'Which node holds what share of the files that each stage wrote. A node that holds a copy counts with it.');
  const stages = data.stages.map((stage) => stage.name).filter((name) => Object.keys(data.placement[name] || {}).length > 0);
  if (stages.length === 0)
    return made.append(element('p', {text: 'The record does not say where files lie: another store than Mosa, or nothing was written.'}));
  const nodes = nodesOf(data.placement);
  made.append(heatTable('stage', nodes, stages, (stage, node) => {
    const all = Object.values(data.placement[stage]).reduce((sum, value) => sum + value, 0);
    const held = data.placement[stage][node] || 0;
    if (held === 0) return {text: '-', strength: 0};
    return {text: `${(held / all * 100).toFixed(1)} %`, strength: held / all, below: bytes(held)};
  }));
}

function drawMatrix(made, name, lead, measured, predicted) {
  const all = [measured, predicted].flatMap((matrix) => Object.values(matrix || {}).flatMap((row) => Object.values(row)));
  const most = all.reduce((a, b) => Math.max(a, b), 0);
  if (most === 0) return;
  made.append(element('h3', {text: name}), element('p', {class: 'faint', text: lead}));
  const hosts = data.hosts.map((host) => host.name);
  made.append(heatTable('host of the task', nodesOf(measured, predicted), hosts, (host, node) => {
    const value = (measured[host] || {})[node] || 0;
    const expected = predicted ? (predicted[host] || {})[node] || 0 : null;
    return {text: value === 0 ? '-' : bytes(value), strength: Math.sqrt(value / most), below: expected === null ? '' : `predicted ${bytes(expected)}`,
            title: host === node ? `on ${node} itself` : `between ${host} and ${node}`};
  }));
}

function drawTraffic() {
  const made = section('Traffic matrix', 'Bytes of tasks\' files by the host of the task and the node that holds them; what is off the diagonal crosses the network.');
  const traffic = data.traffic;
  drawMatrix(made, 'Read', 'Inputs, as they lay when the task began. What its host had in its pages already did not cross the network again.', traffic.read, traffic.predicted_read);
  drawMatrix(made, 'Written', 'Outputs, as they lay when the task had ended.', traffic.written, traffic.predicted_written);
  if (made.querySelector('table') === null) made.append(element('p', {text: 'The record does not say where files lie.'}));
}

// ---- which way bytes went

const kPaths = [
  ['kernel', 'var(--well)', 'passthrough: the kernel wrote them without Mosa', 'bytes_written_passthrough'],
  ['own node', '#3b82c4', 'of the storage node on the same host', 'bytes_written_local', 'bytes_read_local'],
  ['network', '#e08a1e', 'of other hosts\' nodes', 'bytes_written_remote', 'bytes_read_remote'],
  ['with the name', '#b5589f', 'small files that the manager keeps', 'bytes_written_inline', 'bytes_read_inline']];

function pathBar(counters, isRead, most) {
  const bar = element('span', {class: 'bar'});
  for (const [name, colour, , written, read] of kPaths) {
    const value = counters[isRead ? read : written] || 0;
    if (value > 0) bar.append(element('i', {style: `background: ${colour}; width: ${(value / most * 100).toFixed(2)}%`, title: `${name}: ${bytes(value)}`}));
  }
  return bar;
}

function drawPaths() {
  const made = section('Bytes by path', 'What the mounts moved in the run, and by which way. What the kernel reads of its pages or of passthrough files is not seen by mounts: of these there are opens.');
  const mounts = Object.entries(data.counters.mount || {}).filter(([, counters]) => counters !== null).map(([host, counters]) => ({host, counters}));
  if (mounts.length === 0) return made.append(element('p', {text: 'The record does not say: see Not compared.'}));
  made.append(element('div', {class: 'legend'}, kPaths.map(([name, colour, what]) => element('span', {title: what}, [element('i', {style: `background: ${colour}`}), `${name}: ${what}`]))));
  const sum = (counters, isRead) => kPaths.reduce((all, [, , , written, read]) => all + (counters[isRead ? read : written] || 0), 0);
  const most = Math.max(1, ...mounts.flatMap(({counters}) => [sum(counters, true), sum(counters, false)]));
  const storage = data.counters.storage || {};
  made.append(longTable([
    ['Mount of', (row) => row.host],
    ['Read', (row) => bytes(sum(row.counters, true)), 'number'], ['', (row) => pathBar(row.counters, true, most)],
    ['of own node', (row) => bytes(row.counters.bytes_read_local || 0), 'number'], ['network', (row) => bytes(row.counters.bytes_read_remote || 0), 'number'],
    ['Written', (row) => bytes(sum(row.counters, false)), 'number'], ['', (row) => pathBar(row.counters, false, most)],
    ['kernel', (row) => bytes(row.counters.bytes_written_passthrough || 0), 'number'],
    ['own node', (row) => bytes(row.counters.bytes_written_local || 0), 'number'], ['network', (row) => bytes(row.counters.bytes_written_remote || 0), 'number'],
    ['Passthrough opens', (row) => `${count(row.counters.opens_passthrough || 0)} of ${count(row.counters.opens || 0)}`, 'number'],
    ['Node served', (row) => storage[row.host] ? bytes(storage[row.host].bytes_read_remote || 0) : '-', 'number'],
    ['took in', (row) => storage[row.host] ? bytes(storage[row.host].bytes_written_remote || 0) : '-', 'number']], mounts, 40));
}

// ---- how long requests stayed

function drawRequests() {
  const made = section('Residence times', 'How long requests stayed in each component, all hosts together; what took most time in all first. Quantiles are off by an eighth at most. Waits of requests that go on at the same time are added up.');
  if (data.requests.length === 0) return made.append(element('p', {text: 'The record does not say: see Not compared.'}));
  made.append(longTable([
    ['Component', (row) => row.component], ['Class', (row) => row.class], ['Count', (row) => count(row.count), 'number'],
    ['In all', (row) => shortTime(row.sum_us), 'number'], ['Mean', (row) => shortTime(row.mean_us), 'number'],
    ['Predicted', (row) => row.predicted_mean_us === undefined ? '-' : shortTime(row.predicted_mean_us), 'number'],
    ['50 %', (row) => shortTime(row.p50_us), 'number'], ['90 %', (row) => shortTime(row.p90_us), 'number'],
    ['99 %', (row) => shortTime(row.p99_us), 'number'], ['Most', (row) => shortTime(row.max_us), 'number'],
    ['Slowest host', (row) => row.slowest_host === undefined ? '-' : `${row.slowest_host} (mean ${shortTime(row.slowest_mean_us)})`]],
    data.requests, 25));
}

// ---- what it was

function drawConfiguration() {
  const made = section('Configuration and versions');
  const pairs = [...data.configuration, ...data.versions];
  made.append(table([['', ([name]) => name], ['', ([, value]) => value]], pairs));
  made.append(table([
    ['Host', (host) => host.name], ['Tasks at a time', (host) => count(host.slots), 'number'],
    ['Link', (host) => host.link > 0 ? bytes(host.link) + '/s' : 'not known', 'number'],
    ['', (host) => element('span', {text: host.lost ? 'lost in the run' : '', class: 'off'})]], data.hosts));
}

function drawEnvelope() {
  if (!data.envelope) return;
  const made = section('The store\'s envelope', 'What the store carries of many files, small and large, as of \'mosa envelope\'.');
  made.append(element('img', {class: 'envelope', src: data.envelope, alt: 'Curves, heat maps and Kiviat diagrams of the store'}));
}

function drawAll() {
  document.getElementById('verdict').classList.add(data.tone);
  const length = data.stages.reduce((sum, stage) => sum + stage.tasks, 0);
  document.getElementById('about').textContent =
      [when(data.start_s), `${count(length)} tasks`, data.hosts.map((host) => host.name).slice(0, 20).join(', ') + (data.hosts.length > 20 ? ', ...' : ''),
       data.cluster ? `cluster ${data.cluster}` : ''].filter(Boolean).join(' - ');
  for (const draw of [drawTimeline, drawFinding, drawCompared, drawStages, drawFailures, drawPlacement, drawTraffic, drawPaths,
                      drawRequests, drawNotes, drawConfiguration, drawEnvelope])
    try {
      draw();
    } catch (error) {
      page.append(element('p', {class: 'off', text: `This part cannot be drawn: ${error.message}`}));
    }
  const ms = performance.now();
  document.documentElement.dataset.drawnMs = ms.toFixed(0);
  document.getElementById('foot').textContent = `Made by mosa report. Drawn ${(ms / 1000).toFixed(2)} s after the page was asked for.`;
}

drawAll();
