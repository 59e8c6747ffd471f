// A board: a drawing for eyes, and over it a grid of cells for fingers, keys and ears.

import { drawn, element, same } from "./dom.js";
import { key, words } from "./picture.js";
import * as shapes from "./shapes.js";

const EDGE = 0.42;
const STEPS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

function at(node, [x, y]) {
  node.style.transform = `translate(${x + 0.5}px, ${y + 0.5}px)`;
  return node;
}

export class Board {
  /** `onCell(cell)` when a cell is clicked or entered; `onLook(key)` when one is looked at. */
  constructor(root, { label, onCell = () => {}, onLook = () => {} }) {
    this.root = root;
    this.label = label;
    this.onCell = onCell;
    this.onLook = onLook;
    this.grid = [0, 0];
    this.cells = new Map();
    this.walls = new Map();
    this.robots = new Map();
  }

  draw(picture) {
    if (!same(picture.grid, this.grid)) this.#build(picture.grid);
    this.floor.replaceChildren(...this.#floor(picture));
    this.#trails(picture);
    this.#walls(picture);
    this.#robots(picture);
    this.marks.replaceChildren(...this.#marks(picture));
    for (const [k, cell] of this.cells) {
      const label = words(picture, k);
      if (cell.getAttribute("aria-label") !== label) {
        cell.setAttribute("aria-label", label);
        cell.title = label;
      }
    }
  }

  /** Shows which cell is looked at on the other board. */
  point(k) {
    for (const [other, cell] of this.cells) cell.classList.toggle("twin", other === k);
  }

  #build(grid) {
    const [width, height] = grid;
    this.grid = grid;
    this.root.style.setProperty("--w", width);
    this.root.style.setProperty("--h", height);
    for (const layer of ["floor", "paths", "blocks", "movers", "marks"]) this[layer] = drawn("g", { class: layer });
    this.walls.clear();
    this.robots.clear();
    const scene = drawn("svg", { viewBox: `${-EDGE} ${-EDGE} ${width + EDGE} ${height + EDGE}`, "aria-hidden": "true" },
      ...this.#axes(width, height), this.floor, this.paths, this.blocks, this.movers, this.marks);
    this.root.replaceChildren(scene, this.#keys(width, height));
  }

  #axes(width, height) {
    const every = Math.ceil(Math.max(width, height) / 12);
    const axis = (count, place) => Array.from({ length: count }, (_, i) => i).filter((i) => i % every === 0)
      .map((i) => {
        const text = drawn("text", { ...place(i), class: "axis" });
        text.textContent = String(i);
        return text;
      });
    return [...axis(width, (i) => ({ x: i + 0.5, y: -0.12 })), ...axis(height, (i) => ({ x: -0.2, y: i + 0.58 }))];
  }

  #keys(width, height) {
    const grid = element("div", "", "cells");
    grid.setAttribute("role", "grid");
    grid.setAttribute("aria-label", this.label);
    this.cells.clear();
    for (let y = 0; y < height; y += 1) {
      const row = element("div", "", "row");
      row.setAttribute("role", "row");
      for (let x = 0; x < width; x += 1) {
        const cell = element("div", "", "cell");
        cell.setAttribute("role", "gridcell");
        cell.dataset.cell = `${x},${y}`;
        cell.tabIndex = x + y === 0 ? 0 : -1;
        this.cells.set(`${x},${y}`, cell);
        row.append(cell);
      }
      grid.append(row);
    }
    const cellOf = (event) => event.target.closest?.("[data-cell]");
    grid.addEventListener("click", (event) => this.#enter(cellOf(event)));
    grid.addEventListener("keydown", (event) => this.#key(event, cellOf(event)));
    for (const [kind, seen] of [["pointerover", true], ["pointerleave", false], ["focusin", true], ["focusout", false]]) {
      grid.addEventListener(kind, (event) => this.onLook(seen ? cellOf(event)?.dataset.cell : undefined));
    }
    return grid;
  }

  #enter(node) {
    if (!node) return;
    this.#focus(node);
    this.onCell(node.dataset.cell.split(",").map(Number));
  }

  #focus(node) {
    for (const cell of this.cells.values()) cell.tabIndex = -1;
    node.tabIndex = 0;
    node.focus();
  }

  #key(event, node) {
    if (!node || event.ctrlKey || event.altKey || event.metaKey) return;
    const [x, y] = node.dataset.cell.split(",").map(Number);
    const step = STEPS[event.key];
    let next = null;
    if (step) next = [x + step[0], y + step[1]];
    else if (event.key === "Home") next = [0, y];
    else if (event.key === "End") next = [this.grid[0] - 1, y];
    else if (event.key === "Enter" || event.key === " ") this.#enter(node);
    else return;
    event.preventDefault();
    const there = next && this.cells.get(key(next));
    if (there) this.#focus(there);
  }

  #floor(picture) {
    const parts = [];
    for (const { cell, known, dirty } of picture.cells.values()) {
      const home = same(cell, picture.charger);
      const tile = drawn("rect", { x: -0.47, y: -0.47, width: 0.94, height: 0.94, rx: 0.09, class: `tile${known ? "" : " fog"}${home ? " home" : ""}` });
      const inside = [tile];
      if (home) inside.push(shapes.bolt());
      else if (!known) inside.push(shapes.fog());
      if (dirty) inside.push(shapes.dirt());
      parts.push(at(drawn("g", {}, ...inside), cell));
    }
    return parts;
  }

  #marks(picture) {
    const parts = [];
    for (const { cell, forbidden, changed, differs } of picture.cells.values()) {
      if (forbidden) parts.push(at(shapes.forbidden(), cell));
      if (changed) parts.push(at(shapes.news(), cell));
      if (differs) parts.push(at(shapes.differs(), cell));
    }
    return parts;
  }

  #trails(picture) {
    this.paths.replaceChildren(...picture.trails.filter((trail) => trail.cells.length > 1).map((trail, i) => {
      const aside = ((i % 5) - 2) * 0.07;
      const points = trail.cells.map(([x, y]) => `${x + 0.5 + aside},${y + 0.5 + aside}`).join(" ");
      const { tint } = shapes.lookOf({ id: trail.robot });
      const start = drawn("circle", { cx: trail.cells[0][0] + 0.5 + aside, cy: trail.cells[0][1] + 0.5 + aside, r: 0.07 });
      return drawn("g", { class: `trail ${tint}` }, drawn("polyline", { points }), start);
    }));
  }

  /** Obstacles that stay keep their drawings; where as many came as went, they have moved. */
  #walls(picture) {
    const now = [...picture.cells.values()].filter((cell) => cell.wall);
    const come = now.filter((cell) => this.walls.get(key(cell.cell))?.kind !== cell.wall);
    const stay = new Set(now.map((cell) => key(cell.cell)));
    const gone = [...this.walls].filter(([k, wall]) => !stay.has(k) || come.some((c) => key(c.cell) === k && c.wall !== wall.kind));
    for (const [k] of gone) this.walls.delete(k);
    for (const cell of come) {
      const moved = gone.findIndex(([, wall]) => wall.kind === cell.wall);
      const wall = gone.length === come.length && moved >= 0 ? gone.splice(moved, 1)[0][1]
        : { kind: cell.wall, node: shapes.wall(cell.wall) };
      if (!wall.node.isConnected) this.blocks.append(wall.node);
      this.walls.set(key(cell.cell), { kind: wall.kind, node: at(wall.node, cell.cell) });
    }
    const kept = new Set([...this.walls.values()].map((wall) => wall.node));
    for (const node of [...this.blocks.children]) if (!kept.has(node)) node.remove();
  }

  #robots(picture) {
    const here = new Set(picture.robots.map((robot) => robot.id));
    for (const [id, holder] of this.robots) {
      if (!here.has(id)) {
        holder.remove();
        this.robots.delete(id);
      }
    }
    for (const robot of picture.robots) {
      let holder = this.robots.get(robot.id);
      if (!holder) {
        holder = drawn("g", { class: "mover" });
        this.robots.set(robot.id, holder);
        this.movers.append(holder);
      }
      holder.replaceChildren(shapes.robot(robot));
      at(holder, robot.position);
    }
  }
}
