// Details stay open or closed when the page is loaded again; a copy of the address is one press away.
const place = `coag:open:${location.pathname}`;

function read() {
  try { return JSON.parse(sessionStorage.getItem(place) ?? "{}"); } catch { return {}; }
}

function write(state) {
  try { sessionStorage.setItem(place, JSON.stringify(state)); } catch { /* a file, or no room: nothing is kept */ }
}

function nameOf(details) {
  return details.id || [...document.querySelectorAll("details")].indexOf(details).toString();
}

const state = read();
for (const details of document.querySelectorAll("details")) {
  const known = state[nameOf(details)];
  if (known !== undefined) details.open = known;
}
document.addEventListener("toggle", (event) => {
  if (!(event.target instanceof HTMLDetailsElement)) return;
  state[nameOf(event.target)] = event.target.open;
  write(state);
}, true);

// A link to something within closed details opens them.
function reveal() {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = found; at; at = at.parentElement) {
    if (at instanceof HTMLDetailsElement) at.open = true;
  }
  if (found && location.hash) found.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (location.hash) reveal();

// The address of this page, with the phase one is at, to send to somebody.
const copy = document.getElementById("copy-button");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const spot = document.querySelector(".rail a[aria-current]")?.hash ?? location.hash;
    try {
      await navigator.clipboard.writeText(location.href.split("#")[0] + spot);
      copy.textContent = "Copied";
    } catch { copy.textContent = "Not allowed here"; }
    setTimeout(() => { copy.textContent = "Copy link"; }, 2000);
  });
}
