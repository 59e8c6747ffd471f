// Follows an open run: the server sends finished HTML of its own, each piece with an id.
const head = document.querySelector("[data-events]");
const badge = document.getElementById("live");

function showState(state, text) {
  if (!badge || badge.dataset.state === state) return;
  badge.dataset.state = state;
  badge.textContent = text;
}

function put(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const fresh of [...template.content.children]) {
    if (!fresh.id) continue;
    const old = document.getElementById(fresh.id);
    if (old) {
      replace(old, fresh);
    } else {
      const list = document.getElementById(fresh.dataset.list ?? "");
      if (!list || (list.hasAttribute("data-rows") && !list.hasAttribute("data-open-end"))) continue;
      fresh.classList.add("fresh");
      list.append(fresh);
    }
  }
}

// The focus and the open details are the same after the replacement.
function replace(old, fresh) {
  const focused = old.contains(document.activeElement);
  const open = [...old.querySelectorAll("details")].map((one) => one.open);
  [...fresh.querySelectorAll("details")].forEach((one, at) => { one.open = open[at] ?? one.open; });
  if (old.classList.contains("here")) fresh.classList.add("here");
  old.replaceWith(fresh);
  if (focused) (fresh.querySelector("a, summary, button") ?? fresh).focus?.({ preventScroll: true });
}

const words = head?.dataset.follows === "checks"
  ? { on: "checking", ended: "checked" }
  : { on: "live", ended: "the run has ended" };

if (head && typeof EventSource === "function") {
  showState("wait", "connecting");
  const source = new EventSource(head.dataset.events);
  source.addEventListener("open", () => showState(words.on === "live" ? "on" : "check", words.on));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) showState("lost", "connection lost: load the page again");
    else showState("lost", "connection lost, trying again");
  });
  source.addEventListener("fragment", (event) => put(event.data));
  source.addEventListener("checking", () => showState("check", "checking"));
  source.addEventListener("reload", () => location.reload());
  source.addEventListener("trouble", (event) => {
    source.close();
    showState("lost", event.data);
  });
  source.addEventListener("end", () => {
    source.close();
    showState("ended", words.ended);
  });
  addEventListener("pagehide", () => source.close());
}
