// Everything by keyboard: rows with j and k, cycles with the arrows, help with ?.
const dialog = document.getElementById("keys");
const button = document.getElementById("keys-button");
if (button && dialog) {
  button.hidden = false;
  button.addEventListener("click", () => dialog.showModal());
}

const rows = () => [...document.querySelectorAll("[data-rows] [data-row]")];
let here = null;
let leader = "";

function go(step) {
  const all = rows();
  if (!all.length) return;
  let at = all.indexOf(here);
  if (at < 0 && step < 0) at = all.length;
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
  here?.classList.remove("here");
  here = next;
  here.classList.add("here");
  const target = here.querySelector("a.row-link, a[data-open], summary, a") ?? here;
  if (target === here) here.tabIndex = -1;
  target.focus({ preventScroll: true });
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const block = here.offsetHeight > innerHeight * 0.6 ? "start" : "nearest";
  here.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
  mark();
}

// Which phase one is at, in the rail.
const links = new Map([...document.querySelectorAll(".rail a")].map((a) => [a.hash.slice(1), a]));
function mark() {
  if (!here || !links.has(here.id)) return;
  for (const [id, link] of links) {
    if (id === here.id) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
  return Boolean(link);
}

function allDetails() {
  const all = [...document.querySelectorAll("main details")];
  const open = all.some((one) => !one.open);
  for (const one of all) one.open = open;
}

const actions = {
  j: () => go(1),
  k: () => go(-1),
  ArrowDown: () => go(1),
  ArrowUp: () => go(-1),
  ArrowLeft: () => follow("a[rel=prev]"),
  ArrowRight: () => follow("a[rel=next]"),
  u: () => follow("a[data-up]") || follow("a.brand"),
  o: allDetails,
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => dialog?.showModal(),
};

// Arrows scroll whatever can scroll by itself, and the page where it has no rows.
function keepsArrows(target) {
  const box = target.closest?.("[tabindex='0']");
  return Boolean(box && (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const target = event.target;
  if (target.closest?.("input, select, textarea, dialog[open], [contenteditable]")) return;
  if (event.key.startsWith("Arrow") && (event.shiftKey || keepsArrows(target))) return;
  if (/^Arrow(Up|Down)$/.test(event.key) && !rows().length) return;
  if (leader === "g" && event.key === "r") {
    leader = "";
    location.assign(document.body.dataset.runs || "#main");
    return;
  }
  leader = event.key === "g" ? "g" : "";
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
  if (!action) return;
  event.preventDefault();
  action();
});
