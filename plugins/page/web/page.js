// Asks the server every few seconds what the pipelines do, and shows it. charts.js draws the plots.
import { Charts } from "./charts.js";

const STATE_EVERY = 2000, SERIES_EVERY = { "15m": 5000, "1h": 5000, "6h": 15000, "24h": 15000, "7d": 60000, "30d": 60000 };
const PATIENCE = 10000;
const at = (id) => document.getElementById(id);
const charts = new Charts(at("charts"));
const kinds = new Map(); // of each pipeline, to say aloud when one changes
let token = "", chosen = "", budgets = new Map(), asked = 0;

// The page is a frame of Airflow's. It takes Airflow's theme, and its links open Airflow's own pages outside of the frame.
const frame = window.parent === window ? null : window.parent;

function theme() {
  const airflow = frame?.document.documentElement;
  const named = airflow?.classList.contains("dark") ? "dark" : airflow?.classList.contains("light") ? "light" : "";
  return named || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function takeTheme() {
  if (document.documentElement.dataset.theme === theme()) return;
  document.documentElement.dataset.theme = theme();
  charts.recolour();
}

class Trouble extends Error {}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch {
    throw new Trouble("Airflow's web server does not answer. In a shell, make status says what is not healthy.");
  }
  if (answer.status === 401) throw new Trouble("You are logged out. Load Airflow's page again and log in.");
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Trouble(typeof said.detail === "string" ? said.detail : `Answer ${answer.status} to ${path}.`);
  return said;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// ---- what each pipeline does now

function card(state) {
  const made = element("section", { class: state.is_well ? "card" : "card ill", "aria-label": `Pipeline ${state.name}` });
  made.append(element("h2", {}, state.name, " ", element("span", { class: "kind" }, state.kind)));
  made.append(element("p", { class: "sentence" }, state.sentence));
  if (state.alarms?.length) {
    made.append(element("ul", { class: "alarms" }, ...state.alarms.map((line) => element("li", {}, line))));
  }
  if (state.generator) made.append(element("p", { class: "faint" }, `The demo's generator ${state.generator}.`));
  const row = element("p", { class: "buttons" });
  for (const button of state.buttons) row.append(pressable(button));
  const plots = element("button", { type: "button", "aria-pressed": String(state.name === chosen) }, "Plots");
  plots.addEventListener("click", () => choose(state.name));
  row.append(plots);
  made.append(row);
  return made;
}

function pressable(button) {
  const made = element("button", { type: "button", "data-dag": button.dag }, button.label);
  if (button.why_not) {
    made.setAttribute("aria-disabled", "true"); // it keeps the focus, so that its reason can be read
    made.title = button.why_not;
    made.addEventListener("click", () => say(button.why_not));
  } else {
    made.addEventListener("click", () => confirmAndPress(button));
  }
  return made;
}

function say(words) {
  at("announce").textContent = words;
  at("as-of").textContent = words;
}

async function confirmAndPress(button) {
  const dialog = at("confirm");
  at("confirm-title").textContent = `${button.label}?`;
  at("confirm-happens").textContent = `${button.happens} This triggers the Dag ${button.dag}.`;
  at("confirm-go").textContent = button.label;
  dialog.returnValue = "cancel";
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  if (dialog.returnValue !== "go") return;
  try {
    const done = await ask(`dags/${encodeURIComponent(button.dag)}/runs`, { method: "POST", headers: { "X-Freshet-Token": token } });
    say(done.said);
  } catch (failure) {
    trouble(failure);
  }
}

function showStates(answer) {
  token = answer.token;
  const names = answer.pipelines.map((state) => state.name);
  budgets = new Map(answer.pipelines.map((state) => [state.name, state.batch_budget_seconds]));
  at("empty").hidden = names.length > 0;
  const held = document.activeElement?.dataset?.dag ?? document.activeElement?.textContent;
  const fresh = answer.pipelines.map(card);
  at("pipelines").replaceChildren(...fresh);
  const same = [...at("pipelines").querySelectorAll("button")].find((each) => (each.dataset.dag ?? each.textContent) === held);
  if (held && document.activeElement === document.body) same?.focus(); // the button under the keyboard was drawn anew
  for (const state of answer.pipelines) {
    if (kinds.has(state.name) && kinds.get(state.name) !== state.kind) at("announce").textContent = state.sentence;
    kinds.set(state.name, state.kind);
  }
  if (!names.includes(chosen) && names.length) choose(names[0]);
}

// ---- plots

function choose(name) {
  chosen = name;
  at("plots").hidden = false;
  at("plots-title").textContent = `Plots of ${name}`;
  charts.clear();
  void everySeries();
}

function showMarks(marks) {
  at("no-marks").hidden = marks.length > 0;
  at("marks").replaceChildren(
    ...marks.slice(-20).reverse().map((mark) => {
      const when = new Date(mark.at * 1000).toISOString().slice(0, 19).replace("T", " ");
      const ended = mark.exit_code === null ? "" : ` with exit code ${mark.exit_code}`;
      const words = mark.kind === "start" ? "started" : `failed${ended}: ${mark.last_line || "no word"}`;
      return element("li", {}, `${when} ${mark.program} ${words}`);
    }),
  );
}

async function loadSeries() {
  const span = at("span").value, name = chosen, turn = ++asked;
  const answer = await ask(`pipelines/${encodeURIComponent(name)}/series?span=${span}&since=${charts.knownUntil(span)}`);
  if (turn !== asked) return; // another choice was made meanwhile
  charts.add(span, answer, budgets.get(name));
  at("no-data").hidden = !charts.isEmpty();
  showMarks(answer.marks);
}

// ---- again and again, while somebody looks

function trouble(failure) {
  if (!(failure instanceof Trouble)) throw failure;
  at("trouble").textContent = failure.message;
  at("trouble").hidden = false;
  document.querySelector("main").classList.add("stale");
}

async function attempt(work) {
  if (document.hidden) return;
  try {
    await work();
    at("trouble").hidden = true;
    document.querySelector("main").classList.remove("stale");
  } catch (failure) {
    trouble(failure);
  }
}

let statesTimer = 0, seriesTimer = 0;

async function everyState() {
  clearTimeout(statesTimer);
  await attempt(async () => {
    showStates(await ask("pipelines"));
    at("as-of").textContent = `As of ${new Date().toISOString().slice(11, 19)} UTC`;
  });
  statesTimer = setTimeout(everyState, STATE_EVERY);
}

async function everySeries() {
  clearTimeout(seriesTimer);
  if (chosen) await attempt(loadSeries);
  clearTimeout(seriesTimer);
  seriesTimer = setTimeout(everySeries, SERIES_EVERY[at("span").value]);
}

at("span").addEventListener("change", () => { charts.clear(); void everySeries(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) { void everyState(); void everySeries(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", takeTheme);
if (frame) new MutationObserver(takeTheme).observe(frame.document.documentElement, { attributeFilter: ["class"] });
takeTheme();
void everyState();
