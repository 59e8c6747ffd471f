// The live page: shows the stream's state on the boards. It keeps no state but what is chosen.

import { Board } from "./page/board.js";
import { Control } from "./page/control.js";
import { byId, element, setText } from "./page/dom.js";
import { drawDifferences, drawMind, drawRobots } from "./page/mind.js";
import { belief, differences, newsOf, truth } from "./page/picture.js";
import { Stream } from "./page/stream.js";

const KEPT_EVENTS = 200;
const ALARMS = new Set(["blocked", "clean_failed", "drained", "stranded", "refused", "violation"]);
const TIME = { action: "time passes with every action", manual: "time passes by hand", clock: "time passes by the clock" };
const STATES = { connecting: "connecting …", live: "live", lost: "connection lost: trying again …" };

let latest = null;
let chosenId = null;
let news = new Set();

const stream = new Stream({
  onChange: (change, first) => {
    if (first) byId("events").replaceChildren();
    latest = { ...change, reports: new Map(change.reports.map((one) => [one.robot, one.report])) };
    if (change.events.length) news = first ? new Set() : newsOf(change.events);
    drawEvents(change.events);
    draw();
  },
  onState: showState,
  onRefused: () => control.say("this token is not the experimenter's; you continue as an onlooker", true),
});
const control = new Control(stream, chosen);
const boards = {
  truth: new Board(byId("truth"), { label: "The grid as it is", onCell: (cell) => control.onCell(cell), onLook: (k) => boards.belief.point(k) }),
  belief: new Board(byId("belief"), { label: "The grid as it is believed", onLook: (k) => boards.truth.point(k) }),
};

/** The robot that is looked at: the one chosen, or the first. */
function chosen() {
  const robots = latest?.view.robots ?? [];
  return robots.find((robot) => robot.id === chosenId) ?? robots[0] ?? null;
}

function choose(id) {
  chosenId = id;
  draw();
}

function showState(state) {
  document.body.dataset.state = state;
  setText(byId("connection"), STATES[state]);
  byId("lost").hidden = state !== "lost";
}

function draw() {
  const { view, pace, reports } = latest;
  const robot = chosen();
  const report = robot ? reports.get(robot.id) : undefined;
  const marked = { ...view, robots: view.robots.map((one) => ({ ...one, selected: view.robots.length > 1 && one.id === robot?.id })) };
  const real = truth(marked, news);
  boards.truth.draw(real);
  drawBelief(view, robot, report, real);
  drawRobots(latest, robot, choose);
  drawMind(robot, report);
  control.draw(latest, robot);
  setText(byId("time"), `tick ${view.tick} · ${TIME[view.ticks]}`);
  byId("loading").hidden = true;
  byId("world").hidden = false;
  drawPause(view, pace);
}

function drawBelief(view, robot, report, real) {
  const believed = report?.belief;
  byId("belief-panel").dataset.shown = believed ? "belief" : robot ? "silent" : "nobody";
  setText(byId("belief-title"), robot ? `As ${robot.name} believes it` : "As a robot believes it");
  if (!believed) {
    drawDifferences(robot, report, []);
    return;
  }
  const picture = belief(view, robot, believed, real);
  boards.belief.draw(picture);
  drawDifferences(robot, report, differences(robot, believed, picture));
}

function drawPause(view, pace) {
  document.body.classList.toggle("paused", pace.paused);
  byId("paused").hidden = !pace.paused;
  const names = pace.waiting.map((id) => view.robots.find((robot) => robot.id === id)?.name ?? id);
  const waits = names.length ? `waiting to act: ${names.join(", ")}` : "no action waits";
  const saved = pace.steps ? `; ${pace.steps} more will be let through` : "";
  setText(byId("paused-text"), `The world is paused; ${waits}${saved}.`);
}

function drawEvents(events) {
  const list = byId("events");
  for (const event of events) {
    const line = element("li", "", ALARMS.has(event.kind) ? "event alarm" : "event");
    line.append(element("span", event.tick, "when"), element("bdi", event.text, "what"));
    list.prepend(line);
  }
  while (list.childElementCount > KEPT_EVENTS) list.lastElementChild.remove();
  byId("no-events").hidden = list.childElementCount > 0;
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=radio]):not([type=checkbox]), textarea");
  if (event.key !== "r" || typing || event.ctrlKey || event.metaKey || event.altKey || !latest || !byId("shortcuts").checked) return;
  const robots = latest.view.robots;
  const at = robots.findIndex((robot) => robot.id === chosen()?.id);
  if (robots.length) choose(robots[(at + 1) % robots.length].id);
});

showState("connecting");
stream.follow();
