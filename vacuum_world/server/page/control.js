// The experimenter's hand: the token, the pace, and what a click on the grid does.

import { byId, element, named, setText } from "./dom.js";

const SPEEDS = [8, 4, 2, 1, 0.5, 0.25, 0.1];
const ON_CELL = {
  wall: (cell) => ({ kind: "add_obstacle", cell }),
  hidden: (cell) => ({ kind: "add_obstacle", cell, visible: false }),
  remove: (cell) => ({ kind: "remove_obstacle", cell }),
  dirt: (cell) => ({ kind: "add_dirt", cell }),
  clean: (cell) => ({ kind: "remove_dirt", cell }),
  forbid: (cell) => ({ kind: "forbid_cleaning", cell }),
  allow: (cell) => ({ kind: "allow_cleaning", cell }),
  place: (cell, robot) => ({ kind: "place_robot", cell, robot }),
  ambush: (cell) => ({ kind: "arm", trigger: { kind: "wall_on_approach", target: cell } }),
  later: (cell) => ({ kind: "arm", trigger: { kind: "forbid_after_actions", cell, actions: Number(byId("after").value) } }),
};

const HINTS = {
  look: "A click does nothing. Choose what it shall do.",
  place: "The chosen robot is put on a free cell.",
  wall: "Robots next to it feel it.",
  hidden: "Robots do not feel it before they bump into it.",
  remove: "Hidden ones too.",
  ambush: "A hidden obstacle rises before the first move that nears this cell.",
  dirt: "The cell is dirty from now on.",
  clean: "It does not count as cleaned by a robot.",
  forbid: "Cleaning it is counted as a violation, not prevented.",
  allow: "The prohibition is taken back.",
  later: "Cleaning this cell is forbidden once so many actions were taken.",
};

/** What is so besides the grid, in sentences. */
function hiddenThings(view) {
  const faults = view.faults.map((one) => `${one.sensor} sensor ${one.kind} from tick ${one.since} to ${one.until}`);
  const gadgets = view.gadgets.map((one) => `gadget ${one.name}: takes ${one.cost} and does nothing, said to do otherwise: ${one.promise}`);
  const signs = view.signs.map((one) => `sign on ${named(one.cell)}: ${one.text}`);
  const begun = view.under_way.map((one) => `${named(one.cell)} becomes clean at tick ${one.due}`);
  return [...faults, ...gadgets, ...signs, ...begun];
}

export class Control {
  constructor(stream, chosenRobot) {
    this.stream = stream;
    this.chosenRobot = chosenRobot;
    this.pace = null;
    this.byClock = false;
    this.trusted = false;
    byId("control").addEventListener("submit", (event) => this.#unlock(event));
    byId("lock").addEventListener("click", () => stream.follow(""));
    const pressed = { pause: () => this.toggle(), step: () => this.step(), slower: () => this.speed(-1), faster: () => this.speed(1), tick: () => this.tick() };
    for (const [id, act] of Object.entries(pressed)) byId(id).addEventListener("click", act);
    byId("battery-form").addEventListener("submit", (event) => this.#battery(event));
    byId("dynamics-form").addEventListener("submit", (event) => this.#dynamics(event));
    document.addEventListener("keydown", (event) => this.#key(event));
    byId("tools").addEventListener("change", () => this.#explain());
    this.#explain();
  }

  get tool() {
    return document.querySelector('input[name="tool"]:checked')?.value ?? "look";
  }

  /** Says what the chosen tool does. */
  #explain() {
    setText(byId("tool-hint"), HINTS[this.tool]);
    byId("after-line").hidden = this.tool !== "later";
  }

  /** What there is to be done now. */
  draw({ view, pace }, robot) {
    const trusted = view.counters !== null;
    if (trusted !== this.trusted) byId("said").textContent = "";
    Object.assign(this, { pace, trusted, byClock: view.ticks === "clock" });
    byId("control").hidden = trusted;
    byId("hand").hidden = !trusted;
    byId("pace-lock").hidden = trusted;
    byId("pause").disabled = !trusted;
    byId("step").disabled = !trusted || !pace.paused;
    const at = this.#speedNow();
    byId("slower").disabled = !trusted || !this.byClock || at === 0;
    byId("faster").disabled = !trusted || !this.byClock || at === SPEEDS.length - 1;
    byId("clock").hidden = !this.byClock;
    setText(byId("speed"), `a tick every ${pace.interval} s`);
    setText(byId("pause-word"), pace.paused ? "Resume" : "Pause");
    byId("pause").setAttribute("aria-pressed", String(pace.paused));
    byId("battery-form").hidden = !robot;
    setText(byId("battery-of"), robot ? `Battery of ${robot.name}` : "");
    if (trusted) this.#totals(view);
  }

  #totals(view) {
    const counts = Object.entries(view.counters).filter(([, n]) => n > 0);
    setText(byId("counters"), counts.map(([name, n]) => `${name.replaceAll("_", " ")} ${n}`).join(" · "));
    const armed = view.triggers.map((one) => (one.kind === "wall_on_approach"
      ? `a hidden obstacle, on the way to ${named(one.target)}`
      : `cleaning ${named(one.cell)} forbidden after ${one.actions} actions`));
    const notices = [...armed.map((text) => `armed: ${text}`), ...hiddenThings(view)];
    byId("armed").replaceChildren(...notices.map((text) => element("li", text)));
    for (const [name, value] of Object.entries(view.dynamics)) {
      const input = byId(name);
      if (input && document.activeElement !== input && input.dataset.known !== String(value)) {
        input.value = value;
        input.dataset.known = String(value);
      }
    }
  }

  say(text, failed = false) {
    const line = byId("said");
    line.classList.toggle("alarm", failed);
    setText(line, text);
  }

  /** Asks the world for something and says what came of it. */
  async ask(method, path, body, otherwise) {
    try {
      const answer = await this.stream.ask(method, path, body);
      const happened = (answer.events ?? []).map((event) => event.text);
      this.say(happened.join("; ") || otherwise);
    } catch (error) {
      this.say(error.message, true);
    }
  }

  /** A click on a cell of the true grid. */
  onCell(cell) {
    if (!this.trusted || this.tool === "look") return;
    if (this.tool === "place" && !this.chosenRobot()) {
      this.say("choose a robot first", true);
      return;
    }
    this.ask("POST", "/api/world/interventions", ON_CELL[this.tool](cell, this.chosenRobot()?.id), "done");
  }

  toggle() {
    const paused = !this.pace.paused;
    this.ask("PUT", "/api/pace", { paused }, paused ? "paused" : "going on");
  }

  step() {
    this.ask("POST", "/api/pace/step", { count: 1 }, this.byClock ? "one tick, and one action" : "one action is let through");
  }

  tick() {
    this.ask("POST", "/api/world/tick", { count: 1 }, "a tick has passed");
  }

  #speedNow() {
    const distances = SPEEDS.map((seconds) => Math.abs(Math.log(seconds / this.pace.interval)));
    return distances.indexOf(Math.min(...distances));
  }

  speed(by) {
    const interval = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, this.#speedNow() + by))];
    this.ask("PUT", "/api/pace", { interval }, `a tick every ${interval} s`);
  }

  #unlock(event) {
    event.preventDefault();
    const token = byId("token").value.trim();
    byId("token").value = "";
    if (token) this.stream.follow(token);
  }

  #battery(event) {
    event.preventDefault();
    const robot = this.chosenRobot()?.id;
    this.ask("POST", "/api/world/interventions", { kind: "set_battery", robot, battery: Number(byId("battery").value) }, "done");
  }

  #dynamics(event) {
    event.preventDefault();
    const names = ["obstacle_mobility", "dirt_entropy", "clean_uncertainty"];
    const dynamics = Object.fromEntries(names.map((name) => [name, Number(byId(name).value)]));
    this.ask("POST", "/api/world/interventions", { kind: "set_dynamics", dynamics }, "done");
  }

  #key(event) {
    const typing = event.target.closest?.("input:not([type=radio]):not([type=checkbox]), textarea");
    if (typing || event.ctrlKey || event.altKey || event.metaKey || !byId("shortcuts").checked) return;
    const key = event.key.toLowerCase();
    if (key === "escape") {
      byId("tool-look").checked = true;
      this.#explain();
    }
    const button = { p: "pause", s: "step", ",": "slower", ".": "faster" }[key];
    if (button && !byId(button).disabled) byId(button).click();
  }
}
