'use strict';
// A ladder of one connection. Everything from the wire goes into the page as text nodes, never as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const ROW = 29, TOP = 10, NS = 'http://www.w3.org/2000/svg';
const $ = id => document.getElementById(id);
const color = {send: 'var(--send)', write: 'var(--write)', read: 'var(--read)', error: 'var(--error)', other: 'var(--other)'};
let rows = [], shown = [], picked = -1, spans = [];

function svg(name, attributes, text) {
  const e = document.createElementNS(NS, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}
function html(name, text, className) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

const isAbove = r => r.layer === 'rpc' || r.layer === 'rpcrdma';
// Whether `r` is about what `first` carried; layers may be missing.
const belongs = (r, first) => !isAbove(first) || (first.layer === 'rpcrdma' && r.layer === 'rpc' && r.fields.xid === first.fields.xid);

// A row is an arrow: a message, with what the layers above say of it.
function rowsOf(connection) {
  const out = [];
  const last = {};
  for (const r of data.records) {
    if (r.connection !== connection) continue;
    const before = last[r.direction];
    if (isAbove(r) && before && before.frame === r.fields.frame && belongs(r, before.records[0])) {
      before.records.push(r);
      continue;
    }
    const row = {records: [r], at: r.time_ms, frame: r.fields.frame, direction: r.direction};
    out.push(row);
    last[r.direction] = row;
  }
  out.forEach(describe);
  return out;
}

function octets(n) {
  return n < 10000 ? n + ' B' : n < 10485760 ? (n / 1024).toFixed(0) + ' KiB' : (n / 1048576).toFixed(1) + ' MiB';
}

function describe(row) {
  const first = row.records[0], f = first.fields;
  const rpc = row.records.find(r => r.layer === 'rpc'), header = row.records.find(r => r.layer === 'rpcrdma' && r.fields.xid);
  row.error = row.records.some(r => r.error);
  row.arrow = first.layer === 'sctp' ? !['Open', 'Total', 'Lost', 'Undecoded', 'NotDdp'].includes(first.pdu)
    : first.layer !== 'tcp' || ['Fin', 'Reset'].includes(first.pdu);
  row.kind = row.error ? 'error' : isAbove(first) || first.pdu.startsWith('Send') ? 'send' : first.pdu === 'Write' ? 'write'
    : first.pdu.startsWith('Read') ? 'read' : 'other';
  row.xid = (rpc || header || first).fields.xid;
  row.dashed = first.pdu === 'ReadRequest';
  const what = r => {
    const g = r.fields, ops = (g.ops || []).join(' ');
    const name = ops || [g.prog, g.vers, g.proc].filter(x => x !== undefined).join(' ');
    if (r.pdu === 'Call') return (g.again ? 'Call again: ' : 'Call ') + name + (g.path ? ' ' + g.path : '');
    if (r.pdu !== 'Reply') return r.pdu;
    const status = g.status || g.stat + (g.why ? ' ' + g.why : ''), ms = g.latency_ms;
    return 'Reply ' + (ops || g.proc || '') + ': ' + status + (ms === undefined ? '' : ', ' + ms.toFixed(3) + ' ms');
  };
  let text = first.pdu;
  if (isAbove(first)) {
    text = rpc ? '' : first.pdu;
  } else if (first.pdu === 'Request' || first.pdu === 'Reply') {
    text = 'MPA ' + first.pdu + ' rev ' + f.rev + ', CRC ' + (f.crc ? 'on' : 'off') + (f.p2p ? ', peer to peer' : '') +
      (f.reject ? ', rejected' : '');
  } else if (first.pdu === 'Write' || first.pdu === 'ReadResponse') {
    text = (first.pdu === 'Write' ? 'RDMA Write ' : 'Read Response ') + octets(f.length);
  } else if (first.pdu === 'ReadRequest') {
    text = 'Read Request' + (f.size === undefined ? '' : ' ' + octets(f.size));
  } else if (first.pdu === 'Terminate') {
    text = 'Terminate: ' + (f.text || '');
  } else if (first.pdu === 'Open') {
    text = 'TCP connection opened';
  } else if (first.pdu === 'Fin') {
    text = 'TCP FIN';
  } else if (first.pdu === 'Reset') {
    text = 'TCP RST';
  } else if (first.pdu === 'BadCrc') {
    text = 'bad CRC';
  } else if (first.pdu === 'Undecoded') {
    text = octets(f.bytes) + ' not decoded: ' + f.why;
  } else if (first.pdu === 'Lost') {
    text = 'the capture lacks ' + octets(f.bytes);
  } else if (first.pdu === 'Total') {
    text = 'in all ' + octets(f.bytes) + ', ' + f.messages + ' messages from the ' + (first.direction === 'tx' ? 'client' : 'server');
  } else if (first.pdu.startsWith('Send')) {
    text = (rpc ? '' : first.pdu + ' ' + octets(f.length)) + (!rpc && header ? ', ' + header.pdu : '');
  }
  if (f.complete === 0) text += ', in part';
  if (rpc) text = (text ? text + ' · ' : '') + what(rpc);
  row.text = text;
  const fieldText = ([k, v]) => k + '=' + (Array.isArray(v) ? v.flat(3).join(' ') : v);
  const recordText = r => r.layer + ' ' + r.pdu + ' ' + Object.entries(r.fields).map(fieldText).join(' ');
  row.search = (text + ' ' + row.records.map(recordText).join(' ')).toLowerCase();
}

// Call to Reply, in columns beside the lane of who called, so that those under way together do not cover each other.
function spansOf(list) {
  const open = new Map(), out = [], free = [];
  list.forEach((row, i) => {
    const about = row.records.find(r => isAbove(r) && r.fields.xid);
    if (!about) return;
    const xid = about.fields.xid, other = (row.direction === 'tx' ? 'rx' : 'tx') + xid;
    const reply = row.records.some(r => (r.layer === 'rpc' && r.pdu === 'Reply') || r.pdu === 'RDMA_ERROR');
    const answered = row.records.some(r => r.pdu === 'Call') ? undefined : open.get(other);
    if (answered) {
      answered.to = i;
      answered.error = answered.error || row.error;
      free[answered.column] = undefined;
      open.delete(other);
    } else if (!reply && !open.has(row.direction + xid)) {
      let column = 0;
      while (free[column]) ++column;
      free[column] = true;
      const span = {from: i, to: -1, column, caller: row.direction, xid, error: row.error};
      open.set(row.direction + xid, span);
      out.push(span);
    }
  });
  return out;
}

function lanes() {
  const w = Math.max($('scroll').clientWidth, 560);
  return {w, left: 200, right: w - 70};
}

function arrow(g, row, y, x) {
  const from = row.direction === 'tx' ? x.left : x.right, to = row.direction === 'tx' ? x.right : x.left;
  const d = to > from ? 1 : -1;
  const line = svg('line', {x1: from, y1: y, x2: to - d * 7, y2: y, stroke: color[row.kind], 'stroke-width': 1.6});
  if (row.dashed) line.setAttribute('stroke-dasharray', '6 4');
  g.append(line, svg('path', {d: `M${to} ${y} l${-d * 9} -4.5 v9 z`, fill: color[row.kind]}));
}

// Only what is in sight is in the document.
function draw() {
  const x = lanes(), view = $('scroll'), s = $('ladder');
  const height = TOP + shown.length * ROW + 20;
  s.setAttribute('width', x.w);
  s.setAttribute('height', height);
  s.replaceChildren();
  const first = Math.max(0, Math.floor((view.scrollTop - TOP) / ROW) - 20);
  const last = Math.min(shown.length, first + Math.ceil(view.clientHeight / ROW) + 40);
  for (const lane of [x.left, x.right]) s.append(svg('line', {x1: lane, y1: 0, x2: lane, y2: height, stroke: 'var(--line)', 'stroke-width': 2}));
  const rows_ = svg('g', {});
  const same = picked >= 0 && shown[picked] ? shown[picked].xid : undefined;
  for (let i = first; i < last; ++i) {
    const row = shown[i], y = TOP + i * ROW, mid = y + ROW - 8;
    const g = svg('g', {class: 'row' + (i === picked ? ' picked' : same && row.xid === same ? ' same' : ''), 'data-row': i});
    g.append(svg('rect', {class: 'hit', x: 0, y, width: x.w, height: ROW}));
    g.append(svg('text', {class: 'dim', x: 78, y: mid + 1, 'text-anchor': 'end'}, row.at.toFixed(3)));
    if (row.frame) g.append(svg('text', {class: 'dim', x: 128, y: mid + 1, 'text-anchor': 'end'}, '#' + row.frame));
    if (row.arrow) arrow(g, row, mid, x);
    const text = svg('text', {class: 'label', x: (x.left + x.right) / 2, y: row.arrow ? mid - 6 : mid + 1, 'text-anchor': 'middle'});
    const most = Math.floor((x.right - x.left) / 7.2);
    text.textContent = row.text.length > most ? row.text.slice(0, most - 1) + '…' : row.text;
    if (row.error) text.style.fill = 'var(--error)';
    else if (!row.arrow) text.style.fill = 'var(--dim)';
    g.append(text);
    rows_.append(g);
  }
  s.append(rows_);
  for (const span of spans) {
    const to = span.to < 0 ? shown.length - 1 : span.to;
    if (to < first || span.from >= last) continue;
    const lane = span.caller === 'tx' ? x.left - 10 - 7 * Math.min(span.column, 7) : x.right + 10 + 7 * Math.min(span.column, 7);
    const y1 = TOP + Math.max(span.from, first) * ROW + ROW - 8, y2 = TOP + Math.min(to, last) * ROW + ROW - 8;
    const bar = svg('rect', {x: lane - 2.5, y: y1 - 2, width: 5, height: Math.max(y2 - y1 + 4, 4), rx: 2.5,
      fill: span.error ? 'var(--error)' : 'var(--send)', 'fill-opacity': same === span.xid ? 1 : .35, 'pointer-events': 'none'});
    s.append(bar);
  }
  const head = $('lanes');
  head.style.width = x.w + 'px';
  head.children[0].style.left = x.left + 'px';
  head.children[1].style.left = Math.min(x.right, x.w - 80) + 'px';
}

function valueText(name, v) {
  if (!Array.isArray(v)) return name.endsWith('_ms') ? v.toFixed(3) : String(v);
  return v.length ? v.map(e => Array.isArray(e) ? '[' + e.join(' ') + ']' : e).join('\n') : '-';
}

function show(i, scroll) {
  if (i < 0 || i >= shown.length) return;
  picked = i;
  const panel = $('fields');
  panel.replaceChildren();
  for (const r of shown[i].records) {
    const h = html('h2', r.layer + ' · ' + r.pdu, r.error ? 'error' : '');
    const table = html('table');
    for (const [k, v] of Object.entries(r.fields)) {
      const tr = html('tr');
      const cell = html('td', valueText(k, v));
      cell.style.whiteSpace = 'pre-wrap';
      tr.append(html('td', k), cell);
      table.append(tr);
    }
    panel.append(h, table);
  }
  if (scroll) {
    const y = TOP + i * ROW, view = $('scroll');
    if (y < view.scrollTop + 20) view.scrollTop = y - 60;
    if (y > view.scrollTop + view.clientHeight - 100) view.scrollTop = y - view.clientHeight + 140;
  }
  draw();
}

function filter() {
  const words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const before = shown[picked];
  const has = (row, w) => w.startsWith('-') && w.length > 1 ? !row.search.includes(w.slice(1)) : row.search.includes(w);
  shown = rows.filter(row => words.every(w => has(row, w)) && (!$('errors').checked || row.error));
  picked = before ? shown.indexOf(before) : -1;
  spans = spansOf(shown);
  $('count').textContent = shown.length + ' of ' + rows.length + ' messages';
  draw();
}

function choose() {
  const c = data.connections[$('connection').selectedIndex];
  rows = c ? rowsOf(c.connection) : [];
  picked = -1;
  if (c) {
    $('lanes').children[0].replaceChildren(html('b', 'client'), html('small', c.client));
    $('lanes').children[1].replaceChildren(html('b', 'server'), html('small', c.server));
  }
  $('scroll').scrollTop = 0;
  filter();
}

for (const c of data.connections) $('connection').append(html('option', c.connection + ': ' + c.client + ' → ' + c.server));
if (data.left_out > 0) {
  $('note').textContent = data.left_out + ' records are left out, behind the first ' + data.records.length +
    '. Narrow them down with --stream, --xid, --layer or --errors.';
  $('note').hidden = false;
}
$('connection').addEventListener('change', choose);
$('filter').addEventListener('input', filter);
$('errors').addEventListener('change', filter);
$('scroll').addEventListener('scroll', draw);
window.addEventListener('resize', draw);
$('ladder').addEventListener('click', e => {
  const g = e.target.closest('g.row');
  if (g) show(Number(g.dataset.row), false);
});
document.addEventListener('keydown', e => {
  if (e.target.tagName === 'INPUT' || e.target.tagName === 'SELECT') return;
  const step = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1}[e.key];
  if (!step) return;
  e.preventDefault();
  show(Math.min(Math.max(picked + step, 0), shown.length - 1), true);
});
choose();
if (location.hash.startsWith('#row=')) show(Number(location.hash.slice(5)), true);
