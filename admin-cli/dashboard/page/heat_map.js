// The map of all nodes: a square each, drawn on one canvas since there may be thousands.
import {bits, count, el, replace, swatch} from './elements.js';
import {explain} from './story.js';

const FITNESS = {o: ['well', 5], w: ['a check warns', 3], s: ['short of addresses', 2], l: ['loses packets', 7], b: ['pods do not work', 1],
  d: ['draining, frozen or retired', 4], a: ['agent away', 0]};

// Each measure has steps, from the colour of a step to its words, and tells the step of a node.
const MEASURES = {
  free: {
    steps: [[0, 'holds none'], [1, '0'], [2, '1 or 2'], [3, '3 to 7'], [4, '8 to 15'], [5, '16 or more']],
    of: (nodes, i) => nodes.held[i] === 0 ? 0 : 1 + [1, 3, 8, 16].filter((least) => nodes.free[i] >= least).length,
  },
  fitness: {
    steps: Object.values(FITNESS).map(([words, colour]) => [colour, words]),
    of: (nodes, i) => FITNESS[nodes.fitness[i]][1],
  },
  internet: {
    steps: [[0, 'none'], [6, 'below 1 Mbit/s'], [4, 'below 10'], [3, 'below 100'], [2, 'below 1 Gbit/s'], [1, 'more']],
    of: (nodes, i) => nodes.internet[i] < 1 ? 0 : [6, 4, 3, 2, 1][[1e6, 1e7, 1e8, 1e9].filter((least) => nodes.internet[i] >= least).length],
  },
};
const MOST_HEIGHT = 420;
const LARGEST = 28;
const SMALLEST = 4;

export class HeatMap {
  constructor() {
    this.canvas = document.getElementById('map');
    this.readout = document.getElementById('readout');
    this.measure = 'free';
    this.chosen = -1;
    this.nodes = {names: [], free: [], held: [], internet: [], fitness: ''};
    this.showLegend();
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    document.getElementById('measure').addEventListener('change', (event) => {
      this.measure = event.target.value;
      this.showLegend();
      this.draw();
    });
    this.canvas.addEventListener('mousemove', (event) => this.choose(this.at(event)));
    this.canvas.addEventListener('click', (event) => this.open(this.at(event)));
    this.canvas.addEventListener('keydown', (event) => this.press(event));
  }

  show(nodes) {
    // A node keeps the frame when others come and go.
    const name = this.nodes.names[this.chosen];
    this.nodes = nodes;
    this.chosen = name === undefined ? -1 : nodes.names.indexOf(name);
    this.draw();
  }

  showLegend() {
    replace(document.getElementById('legend'),
      ...MEASURES[this.measure].steps.map(([colour, words]) => el('li', {}, swatch(`h${colour}`), words)));
  }

  // Sets how large a square is, so that all fit, and how many are in a row.
  measureUp() {
    const total = Math.max(1, this.nodes.names.length);
    this.width = this.canvas.parentElement.clientWidth;
    this.size = Math.min(LARGEST, Math.max(SMALLEST, Math.floor(Math.sqrt(this.width * MOST_HEIGHT / total))));
    this.columns = Math.max(1, Math.floor(this.width / this.size));
    this.rows = Math.ceil(total / this.columns);
  }

  draw() {
    this.measureUp();
    const scale = window.devicePixelRatio || 1;
    const height = this.rows * this.size;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext('2d');
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colours = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => style.getPropertyValue(`--h${i}`).trim());
    const gap = this.size > 6 ? 1 : 0.5;
    for (let i = 0; i < this.nodes.names.length; ++i) {
      context.fillStyle = colours[MEASURES[this.measure].of(this.nodes, i)];
      context.fillRect((i % this.columns) * this.size, Math.floor(i / this.columns) * this.size, this.size - gap, this.size - gap);
    }
    if (this.chosen < 0) return;
    context.strokeStyle = style.getPropertyValue('--text').trim();
    context.lineWidth = 2;
    context.strokeRect((this.chosen % this.columns) * this.size, Math.floor(this.chosen / this.columns) * this.size, this.size - gap, this.size - gap);
  }

  at(event) {
    const i = Math.floor(event.offsetY / this.size) * this.columns + Math.floor(event.offsetX / this.size);
    return Math.floor(event.offsetX / this.size) < this.columns && i < this.nodes.names.length ? i : -1;
  }

  choose(i) {
    if (i === this.chosen || i < 0) return;
    this.chosen = i;
    const {names, free, held, internet, fitness} = this.nodes;
    this.readout.textContent = `${names[i]}: ${count(free[i])} free of ${count(held[i])} addresses, ${FITNESS[fitness[i]][0]}, ` +
      `${bits(internet[i])} with the Internet`;
    this.draw();
  }

  open(i) {
    if (i >= 0) explain(this.nodes.names[i]);
  }

  press(event) {
    const last = this.nodes.names.length - 1;
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns};
    let to = this.chosen;
    if (event.key in steps) to = this.chosen < 0 ? 0 : this.chosen + steps[event.key];
    else if (event.key === 'Home') to = 0;
    else if (event.key === 'End') to = last;
    else if (event.key === 'Enter') this.open(this.chosen);
    else return;
    event.preventDefault();
    if (to >= 0 && to <= last) this.choose(to);
  }
}
