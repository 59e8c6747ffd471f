// The drawings: one cell is one unit wide.

import { drawn } from "./dom.js";

const SHAPES = ["circle", "square", "triangle", "diamond", "hexagon", "star"];

/** Which colour and which shape a robot has, by its number in order of joining. */
export function lookOf(robot) {
  const number = Math.max(0, (Number.parseInt(robot.id.slice(1), 10) || 1) - 1);
  return { shape: SHAPES[number % SHAPES.length], tint: `tint-${number % 6}` };
}

function corners(count, radius, turn = -90, inner = radius) {
  const points = [];
  const every = inner === radius ? count : count * 2;
  for (let i = 0; i < every; i += 1) {
    const angle = ((turn + (360 / every) * i) * Math.PI) / 180;
    const reach = i % 2 && inner !== radius ? inner : radius;
    points.push(`${(Math.cos(angle) * reach).toFixed(3)},${(Math.sin(angle) * reach).toFixed(3)}`);
  }
  return points.join(" ");
}

function body(shape) {
  const polygon = (points) => drawn("polygon", { points, class: "body" });
  switch (shape) {
    case "square": return drawn("rect", { x: -0.22, y: -0.22, width: 0.44, height: 0.44, rx: 0.05, class: "body" });
    case "triangle": return polygon(corners(3, 0.32));
    case "diamond": return polygon(corners(4, 0.3));
    case "hexagon": return polygon(corners(6, 0.27));
    case "star": return polygon(corners(6, 0.32, -90, 0.21));
    default: return drawn("circle", { r: 0.25, class: "body" });
  }
}

/** A robot with its charge as a ring around it. */
export function robot(one) {
  const { shape, tint } = lookOf(one);
  const around = 2 * Math.PI * 0.4;
  const charge = (around * one.battery) / 100;
  const initial = drawn("text", { y: shape === "triangle" ? 0.12 : 0.075, class: "initial" });
  initial.textContent = [...one.name][0] ?? "";
  const parts = [
    drawn("circle", { r: 0.45, class: "halo" }),
    drawn("circle", { r: 0.4, class: "ring" }),
    drawn("circle", { r: 0.4, class: "charge", transform: "rotate(-90)", "stroke-dasharray": `${charge} ${around}` }),
    body(shape),
    initial,
  ];
  if (one.stranded) {
    const mark = drawn("text", { x: 0.33, y: -0.2, class: "badge-mark" });
    mark.textContent = "!";
    parts.push(drawn("circle", { cx: 0.33, cy: -0.29, r: 0.13, class: "badge" }), mark);
  }
  return drawn("g", { class: `robot ${tint}${one.selected ? " selected" : ""}` }, ...parts);
}

/** The robot's shape alone, for lists. */
export function sign(one) {
  const { shape, tint } = lookOf(one);
  return drawn("svg", { viewBox: "-.36 -.36 .72 .72", class: `sign ${tint}`, "aria-hidden": "true" }, body(shape));
}

export function wall(kind) {
  const block = drawn("rect", { x: -0.41, y: -0.41, width: 0.82, height: 0.82, rx: 0.09, class: "block" });
  const joints = drawn("path", {
    class: "joints",
    d: "M-.41 -.14H.41M-.41 .14H.41M-.12 -.41V-.14M.18 -.14V.14M-.12 .14V.41",
  });
  return drawn("g", { class: `wall ${kind}` }, block, joints);
}

const DIRT = [[-0.2, 0.12, 0.09], [0.05, 0.22, 0.12], [0.24, 0.02, 0.07], [-0.06, -0.08, 0.1], [0.14, -0.22, 0.06], [-0.26, -0.18, 0.05]];

export function dirt() {
  return drawn("g", { class: "dirt" }, ...DIRT.map(([cx, cy, r]) => drawn("circle", { cx, cy, r })));
}

export function bolt() {
  return drawn("path", { class: "bolt", d: "M.06 -.34L-.2 .06H-.03L-.07 .34L.2 -.08H.03Z" });
}

export function forbidden() {
  return drawn("g", { class: "forbidden" },
    drawn("rect", { x: -0.43, y: -0.43, width: 0.86, height: 0.86, rx: 0.09, class: "fence" }),
    drawn("circle", { cx: 0.28, cy: 0.28, r: 0.13, class: "no" }),
    drawn("path", { d: "M.21 .28H.35", class: "bar" }));
}

export function differs() {
  const mark = drawn("text", { x: 0.31, y: -0.235, class: "unequal" });
  mark.textContent = "≠";
  return drawn("g", { class: "differs" },
    drawn("rect", { x: -0.45, y: -0.45, width: 0.9, height: 0.9, rx: 0.09, class: "frame" }),
    drawn("circle", { cx: 0.31, cy: -0.31, r: 0.15, class: "disc" }), mark);
}

export function news() {
  return drawn("path", { class: "news", d: "M-.47 -.39a.08 .08 0 0 1 .08 -.08H-.17L-.47 -.17Z" });
}

export function fog() {
  const mark = drawn("text", { y: 0.09, class: "unknown" });
  mark.textContent = "?";
  return mark;
}
