// The live page: reads the event stream and draws what it tells. No state of its own but the token.

const KEPT_EVENTS = 200;
const ALARMS = new Set(["blocked", "clean_failed", "drained", "stranded", "refused", "violation"]);

const byId = (id) => document.getElementById(id);
let token = "";
let stream = new AbortController();

/** An element with text; text is never read as markup. */
function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

const same = (a, b) => a[0] === b[0] && a[1] === b[1];

/** What stands on a cell, as class names that are words for screen readers, too. */
function contents(view, cell) {
  const found = [];
  if (same(view.charger, cell)) found.push("charger");
  if (view.dirty.some((other) => same(other, cell))) found.push("dirty");
  for (const obstacle of view.obstacles) {
    if (same(obstacle.cell, cell)) found.push(obstacle.visible ? "obstacle" : "hidden");
  }
  if ((view.forbidden ?? []).some((other) => same(other, cell))) found.push("forbidden");
  return found;
}

function drawCell(view, cell) {
  const found = contents(view, cell);
  const drawn = element("td", "", found.join(" "));
  const here = view.robots.filter((robot) => same(robot.position, cell));
  for (const robot of here) {
    drawn.append(element("span", robot.name, robot.stranded ? "robot stranded" : "robot"));
  }
  const words = [...found, ...here.map((robot) => `robot ${robot.name}`)];
  drawn.setAttribute("aria-label", `${cell[0]},${cell[1]}: ${words.join(", ") || "clean"}`);
  drawn.title = drawn.getAttribute("aria-label");
  return drawn;
}

function drawGrid(view) {
  const [width, height] = view.grid;
  const rows = [];
  for (let y = 0; y < height; y += 1) {
    const row = document.createElement("tr");
    for (let x = 0; x < width; x += 1) row.append(drawCell(view, [x, y]));
    rows.push(row);
  }
  byId("grid").replaceChildren(...rows);
}

function drawRobots(view) {
  const robots = view.robots.map((robot) => {
    const line = element("li", `${robot.name} at (${robot.position.join(", ")}), battery ${robot.battery}`);
    if (robot.stranded) line.append(element("strong", " stranded", "alarm"));
    const meter = element("meter", `${robot.battery} of 100`);
    Object.assign(meter, { min: 0, max: 100, low: 30, optimum: 100, value: robot.battery });
    meter.setAttribute("aria-label", `battery of ${robot.name}`);
    line.append(meter);
    return line;
  });
  byId("robots").replaceChildren(...(robots.length ? robots : [element("li", "none yet")]));
}

function drawEvents(events) {
  const list = byId("events");
  for (const event of events) {
    list.prepend(element("li", `${event.tick}: ${event.text}`, ALARMS.has(event.kind) ? "alarm" : ""));
  }
  while (list.childElementCount > KEPT_EVENTS) list.lastElementChild.remove();
}

function draw({ view, events }) {
  drawGrid(view);
  drawRobots(view);
  drawEvents(events);
  byId("status").textContent = `tick ${view.tick}, time passes by ${view.ticks}`;
  byId("tick").disabled = view.counters === null;
  const counts = Object.entries(view.counters ?? {});
  byId("counters").textContent = counts.map(([name, n]) => `${name.replaceAll("_", " ")} ${n}`).join(" · ");
}

const authorization = () => (token ? { Authorization: `Bearer ${token}` } : {});

/** Every `data:` of an event stream, parsed. */
async function* messages(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value.replaceAll("\r", "");
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data:"));
      if (data.length) yield JSON.parse(data.map((line) => line.slice(5)).join("\n"));
    }
  }
}

async function follow(signal) {
  const response = await fetch("/api/events", { headers: authorization(), signal });
  if (response.status === 401) throw new Error("this control token is not valid here");
  byId("events").replaceChildren();
  for await (const message of messages(response)) draw(message);
  throw new Error("the world has stopped");
}

/** Follow the stream for as long as this token is the one; come back when the world does. */
async function live() {
  stream.abort();
  stream = new AbortController();
  const { signal } = stream;
  while (!signal.aborted) {
    try {
      await follow(signal);
    } catch (error) {
      if (signal.aborted) return;
      byId("status").textContent = `${error.message}; trying again …`;
    }
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}

byId("control").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  live();
});

byId("tick").addEventListener("click", async () => {
  const response = await fetch("/api/world/tick", { method: "POST", headers: authorization() });
  if (!response.ok) byId("status").textContent = (await response.json()).detail;
});

live();
