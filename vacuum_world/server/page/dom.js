// Making elements. Text is never read as markup, and no character of it steers how it is shown.

const SVG = "http://www.w3.org/2000/svg";
// Controls but tab and newline, and the marks that turn the direction of writing.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export const byId = (id) => document.getElementById(id);

/** A foreign text in which what cannot be seen is made visible. */
export function plain(text) {
  return String(text).replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** An element with text and a class. */
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = plain(text);
  if (className) made.className = className;
  return made;
}

/** An element with children. */
export function box(name, className, ...children) {
  const made = element(name, "", className);
  made.append(...children);
  return made;
}

/** A part of a drawing. */
export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Sets a text only where it differs, so that screen readers hear changes only. */
export function setText(node, text) {
  const shown = plain(text);
  if (node.textContent !== shown) node.textContent = shown;
}

export const same = (a, b) => a[0] === b[0] && a[1] === b[1];
export const named = (cell) => `(${cell[0]}, ${cell[1]})`;
