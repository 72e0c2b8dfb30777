// The place for messages: errors in an alert, good news in a status. Each speaker has one line there.
import { at, element } from "./dom.js";

const lines = new Map(); // of each speaker

export function unsay(who) {
  lines.get(who)?.remove();
  lines.delete(who);
}

// `closes`: the line has a button that takes it away.
export function say(who, words, { good = false, closes = false } = {}) {
  if (lines.get(who)?.firstChild.data === words) return; // a screen reader says it once
  unsay(who);
  const line = element("p", { class: good ? "message" : "message ill" }, words);
  if (closes) {
    const close = element("button", { type: "button" }, "Close");
    close.addEventListener("click", () => unsay(who));
    line.append(" ", close);
  }
  lines.set(who, line);
  at(good ? "news" : "errors").append(line);
}
