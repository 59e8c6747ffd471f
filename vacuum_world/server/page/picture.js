// What a board shows, as plain values: the world as it is, the world as an agent believes it.

import { named, same } from "./dom.js";

const NEWS = new Set(["obstacle_moved", "obstacle_appeared", "obstacle_removed", "dirt_appeared",
  "dirt_removed", "cleaned", "clean_failed", "cell_forbidden", "cell_allowed"]);

export const key = (cell) => `${cell[0]},${cell[1]}`;
const has = (cells, cell) => cells.some((other) => same(other, cell));
const set = (cells) => new Set(cells.map(key));

function everyCell(grid, make) {
  const cells = new Map();
  for (let y = 0; y < grid[1]; y += 1) {
    for (let x = 0; x < grid[0]; x += 1) cells.set(`${x},${y}`, make([x, y]));
  }
  return cells;
}

/** The world as it is, as far as this onlooker may see it. */
export function truth(view, news) {
  const dirty = set(view.dirty);
  const forbidden = set(view.forbidden ?? []);
  const walls = new Map(view.obstacles.map((wall) => [key(wall.cell), wall]));
  const cells = everyCell(view.grid, (cell) => {
    const wall = walls.get(key(cell));
    return {
      cell,
      known: true,
      dirty: dirty.has(key(cell)),
      wall: wall ? (wall.visible ? "wall" : "hidden") : null,
      forbidden: forbidden.has(key(cell)),
      changed: news.has(key(cell)),
      differs: null,
    };
  });
  return { grid: view.grid, charger: view.charger, cells, trails: view.trails, robots: view.robots };
}

/** Cells that these events changed. */
export const newsOf = (events) => set(events.filter((e) => e.cell && NEWS.has(e.kind)).map((e) => e.cell));

function difference(believed, real, free) {
  if (believed.wall && !real.wall && free) return "believed blocked, is free";
  if (!believed.wall && believed.known && real.wall) return "believed free, is blocked";
  if (believed.dirty && !real.dirty) return "believed dirty, is clean";
  if (believed.known && !believed.dirty && !believed.wall && real.dirty) return "believed clean, is dirty";
  return null;
}

/** The world as an agent believes it, with what is otherwise in truth. */
export function belief(view, robot, claim, real) {
  const [dirty, clean, walls] = [set(claim.dirty), set(claim.clean), set(claim.obstacles)];
  const position = claim.position;
  const cells = everyCell(view.grid, (cell) => {
    const k = key(cell);
    const here = {
      cell,
      known: dirty.has(k) || clean.has(k) || walls.has(k),
      dirty: dirty.has(k),
      wall: walls.has(k) ? "wall" : null,
      forbidden: false,
      changed: false,
    };
    const free = !has(view.robots.map((other) => other.position), cell);
    return { ...here, differs: difference(here, real.cells.get(k), free) };
  });
  const itself = position ? [{ ...robot, position, battery: claim.battery ?? robot.battery }] : [];
  return { grid: view.grid, charger: view.charger, cells, trails: [], robots: itself };
}

/** What an agent believes otherwise than it is, as sentences. */
export function differences(robot, claim, picture) {
  const sentences = [];
  if (claim.position && !same(claim.position, robot.position)) {
    sentences.push(`believes itself at ${named(claim.position)}, is at ${named(robot.position)}`);
  }
  if (claim.battery !== null && claim.battery !== robot.battery) {
    sentences.push(`believes its battery at ${claim.battery}, it is at ${robot.battery}`);
  }
  for (const { cell, differs } of picture.cells.values()) {
    if (differs) sentences.push(`${named(cell)} ${differs}`);
  }
  return sentences;
}

/** A cell in words, for those who hear the page. */
export function words(picture, k) {
  const cell = picture.cells.get(k);
  const parts = [];
  if (same(picture.charger, cell.cell)) parts.push("charger");
  for (const robot of picture.robots) if (same(robot.position, cell.cell)) parts.push(`robot ${robot.name}`);
  if (cell.wall) parts.push(cell.wall === "hidden" ? "hidden obstacle" : "obstacle");
  if (cell.dirty) parts.push("dirty");
  if (cell.forbidden) parts.push("cleaning forbidden");
  if (cell.changed) parts.push("just changed");
  if (!cell.known) parts.push("not known");
  if (cell.differs) parts.push(`differs: ${cell.differs}`);
  return `${cell.cell[0]}, ${cell.cell[1]}: ${parts.join(", ") || "clean"}`;
}
