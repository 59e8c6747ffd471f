// What a page loads. Everything works without it; it adds keys, live updates and memory of what is open.
import "./keys.js";
import "./keep.js";
import "./live.js";
