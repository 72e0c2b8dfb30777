// A press of a button: it asks first, triggers the Dag, and says how that went until the next press.
import { at } from "./dom.js";
import { say, unsay } from "./messages.js";
import { ask, lineOf } from "./server.js";

async function confirmed(button) {
  const dialog = at("confirm");
  at("confirm-title").textContent = `${button.label}?`;
  at("confirm-happens").textContent = `${button.happens} This triggers the Dag ${button.dag}.`;
  at("confirm-go").textContent = button.label;
  dialog.returnValue = "cancel";
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  return dialog.returnValue === "go";
}

export async function press(button, token) {
  unsay("press");
  if (button.why_not) return say("press", button.why_not, { closes: true });
  if (!(await confirmed(button))) return;
  try {
    const done = await ask(`dags/${encodeURIComponent(button.dag)}/runs`, { method: "POST", headers: { "X-Freshet-Token": token() } });
    say("press", done.said, { good: true, closes: true });
  } catch (failure) {
    say("press", lineOf(failure), { closes: true });
  }
}
