// The robots, what the chosen one thinks, and what it believes otherwise than it is.

import { box, byId, element, named, setText } from "./dom.js";
import { sign } from "./shapes.js";

const MARKS = { chosen: "✔", rejected: "✕", open: "○" };

function charge(robot, believed) {
  const bar = box("div", "charge-bar", element("span", "", "charge-fill"));
  bar.firstChild.style.width = `${robot.battery}%`;
  if (robot.battery < 30) bar.classList.add("low");
  bar.setAttribute("aria-hidden", "true");
  if (typeof believed === "number") {
    const notch = element("span", "", "charge-believed");
    notch.style.left = `${believed}%`;
    bar.append(notch);
  }
  return bar;
}

function card(robot, report, { chosen, waits, onChoose }) {
  const believed = report?.belief?.battery;
  const button = element("button", "", "robot-card");
  button.type = "button";
  button.dataset.robot = robot.id;
  button.setAttribute("aria-pressed", String(chosen));
  const name = box("span", "robot-name", element("bdi", robot.name));
  const tags = [];
  if (robot.stranded) tags.push(element("span", "stranded", "tag alarm"));
  if (waits) tags.push(element("span", "action waits", "tag"));
  const line = `at ${named(robot.position)}`;
  const amount = box("span", "amount", element("span", "battery ", "visually-hidden"), element("span", `${robot.battery} %`));
  if (typeof believed === "number" && believed !== robot.battery) amount.append(element("span", ` ≠ believes ${believed} %`, "wrong"));
  button.append(sign(robot), name, element("span", line, "where"), box("span", "tags", ...tags), charge(robot, believed), amount);
  button.addEventListener("click", () => onChoose(robot.id));
  return box("li", "", button);
}

export function drawRobots({ view, pace, reports }, chosen, onChoose) {
  const list = byId("robots");
  const focused = document.activeElement?.dataset?.robot;
  const cards = view.robots.map((robot) => card(robot, reports.get(robot.id), {
    chosen: robot.id === chosen?.id, waits: pace.waiting.includes(robot.id), onChoose,
  }));
  list.replaceChildren(...(cards.length ? cards : [element("li", "None has joined yet.", "empty-line")]));
  if (focused) list.querySelector(`[data-robot="${CSS.escape(focused)}"]`)?.focus();
}

function steps(report) {
  const phases = report.phases.length ? report.phases : [report.phase];
  const now = phases.indexOf(report.phase);
  return phases.map((phase, i) => {
    const when = i < now ? "done" : i === now ? "now" : "later";
    const step = element("li", phase, `step ${when}`);
    if (when === "now") step.setAttribute("aria-current", "step");
    return step;
  });
}

function option(one) {
  const mark = element("span", MARKS[one.state], "mark");
  mark.setAttribute("aria-hidden", "true");
  const text = box("span", "option-text", element("bdi", one.text));
  const state = element("span", one.state === "open" ? "considered" : one.state, "option-state");
  return box("li", `option ${one.state}`, mark, text, state, element("span", one.note, "option-note"));
}

/** What the chosen robot's agent says of its thinking. */
export function drawMind(robot, report) {
  byId("mind").hidden = !robot;
  if (!robot) return;
  setText(byId("mind-title"), `What ${robot.name} thinks`);
  setText(byId("cycle"), report?.cycle ? `cycle ${report.cycle}` : "");
  byId("silent").hidden = Boolean(report);
  byId("thinking").hidden = !report;
  if (!report) return;
  byId("steps").replaceChildren(...steps(report));
  setText(byId("about"), report.about || "It says no more about this.");
  byId("options").replaceChildren(...report.options.map(option));
}

/** What is believed otherwise than it is. */
export function drawDifferences(robot, report, sentences) {
  const badge = byId("unequal-count");
  badge.hidden = !report?.belief;
  badge.classList.toggle("none", sentences.length === 0);
  const count = sentences.length === 1 ? "1 difference" : `${sentences.length} differences`;
  setText(badge, sentences.length ? `≠ ${count}` : "as it is");
  const lines = sentences.slice(0, 12).map((text) => element("li", text));
  if (sentences.length > 12) lines.push(element("li", `and ${sentences.length - 12} more`));
  byId("differences").replaceChildren(...lines);
}
