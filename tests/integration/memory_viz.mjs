// Opens snapshots in PyTorch's own viewer, MemoryViz.js: all its views, as a browser would, and what they show.
// Usage: NODE_PATH=... node memory_viz.mjs MEMORY_VIZ_JS SNAPSHOT...   Needs jsdom and d3. Prints one JSON object a
// snapshot and view.
import {createRequire} from 'node:module';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const [viewer, ...snapshots] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const {JSDOM, VirtualConsole} = require('jsdom');

const errors = [];
const virtualConsole = new VirtualConsole();
virtualConsole.on('jsdomError', error => errors.push(String(error.detail || error)));
const {window} = new JSDOM('<!DOCTYPE html><head></head><body></body>', {virtualConsole});
const frames = [];
window.requestAnimationFrame = callback => frames.push(callback);
// What jsdom has not, and the viewer or d3 asks for.
window.Element.prototype.scrollIntoViewIfNeeded = () => {};
Object.defineProperty(window.SVGElement.prototype, 'viewBox', {
  get() {
    const [x, y, width, height] = (this.getAttribute('viewBox') || '0 0 0 0').split(' ').map(Number);
    return {baseVal: {x, y, width, height}};
  },
});
for (const name of ['window', 'document', 'navigator', 'Element', 'SVGElement', 'Node'])
  Object.defineProperty(globalThis, name, {value: window[name], writable: true});
globalThis.d3 = require('d3/dist/d3.js');
console.log = () => {};

// Its imports are of a network that a test has not.
const script = fs.readFileSync(viewer, 'utf8').replace(/^import (.*) from "https:.*$/gm, (_, what) =>
  what.startsWith('*') ? 'const d3 = globalThis.d3;' : `const ${what} = globalThis.d3;`);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memory_viz'));
fs.writeFileSync(path.join(folder, 'MemoryViz.mjs'), script);
const {add_local_files} = await import(path.join(folder, 'MemoryViz.mjs'));
fs.rmSync(folder, {recursive: true});

function send(element, type) {
  element.dispatchEvent(new window.MouseEvent(type, {bubbles: true, view: window}));
}

// Hovers over and presses what can be: the first and the last hundred of each kind.
function touch(root, kind) {
  const all = [...root.querySelectorAll(kind)].filter(element => element.__data__);
  const some = all.length > 200 ? [...all.slice(0, 100), ...all.slice(-100)] : all;
  for (const element of some) for (const type of ['mouseover', 'mousedown', 'mouseleave']) send(element, type);
}

const looks = {
  // What is still live at the right edge.
  'Active Memory Timeline': root => {
    const detail = root.querySelector('input');
    detail.value = detail.max;
    send(detail, 'change');
    const shapes = [...root.querySelectorAll('polygon')].map(p => p.__data__).filter(d => d && d.elem !== 'summarized');
    const end = shapes.reduce((last, d) => Math.max(last, d.timesteps.at(-1)), 0);
    touch(root, 'polygon');
    const live = shapes.filter(d => d.timesteps.at(-1) === end);
    return {
      live: live.reduce((sum, d) => sum + d.size, 0),
      blocks: live.length,
      legend: [...root.querySelectorAll('text')].map(t => t.textContent),
      told: root.querySelector('pre').textContent,
    };
  },
  'Active Cached Segment Timeline': root => {
    const shapes = [...root.querySelectorAll('polygon')].map(p => p.__data__).filter(d => d && d.elem !== 'summarized');
    touch(root, 'polygon');
    return {shapes: shapes.length};
  },
  // The last event is selected: the segments and blocks then. Each other event is drawn too.
  'Allocator State History': root => {
    const events = [...root.querySelectorAll('pre')].filter(p => p.__data__);
    const told = [...root.querySelectorAll('pre')].find(p => !p.__data__).textContent;
    const rects = [...root.querySelectorAll('rect')].map(r => r.__data__);
    touch(root, 'rect');
    for (const event of events.length > 60 ? [...events.slice(0, 30), ...events.slice(-30)] : events)
      for (const type of ['mouseover', 'mousedown', 'mouseleave']) send(event, type);
    return {told, events: events.length, rects: rects.length};
  },
  'Allocator Settings': root => ({told: root.querySelector('pre').textContent}),
};

for (const snapshot of snapshots)
  for (const [view, look] of Object.entries(looks)) {
    const before = new Set(window.document.body.children);
    const base64 = fs.readFileSync(snapshot).toString('base64');
    add_local_files([{name: `${snapshot} ${view}`, base64}], view);
    const select = window.document.querySelector('select');
    select.selectedIndex = select.options.length - 1;
    send(select, 'change');
    while (frames.length) frames.shift()();
    const roots = [...window.document.body.children].filter(child => !before.has(child));
    process.stdout.write(JSON.stringify({snapshot, view, ...look(roots.at(-1)), errors: errors.splice(0)}) + '\n');
  }
