// Asks the server every few seconds what the pipelines do, and shows it: cards.js the state, charts.js the plots.
import { Cards } from "./cards.js";
import { Charts } from "./charts.js";
import { at, element, setText } from "./dom.js";
import { say, unsay } from "./messages.js";
import { press } from "./press.js";
import { ask, lineOf, needChartLibrary } from "./server.js";

const STATE_EVERY = 2000, SERIES_EVERY = { "15m": 5000, "1h": 5000, "6h": 15000, "24h": 15000, "7d": 60000, "30d": 60000 };
const PLOTLESS = ["unreadable", "not prepared"]; // kinds of pipelines that have no plots
let token = "", chosen = "", states = [];
const charts = new Charts(at("charts"));
const cards = new Cards(at("pipelines"), { press: (button) => press(button, () => token), choose });

// The page is a frame of Airflow's, and takes Airflow's theme.
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

// Asks again and again while somebody looks. An error is said in one line, and the next turn comes all the same.
function poll(who, { load, show, doubt, pause }) {
  let timer = 0, newest = 0;
  return async function now() {
    clearTimeout(timer);
    const turn = ++newest;
    try {
      const answer = document.hidden ? null : await load();
      if (turn !== newest) return; // another choice was made meanwhile
      if (answer !== null) { show(answer); unsay(who); }
    } catch (failure) {
      if (turn !== newest) return;
      say(who, lineOf(failure));
      doubt();
    } finally {
      if (turn === newest) timer = setTimeout(now, pause());
    }
  };
}

// ---- what each pipeline does now

function showStates(answer) {
  at("empty").hidden = answer.pipelines.length > 0;
  ({ token, pipelines: states } = answer);
  at("plots").hidden = !states.length;
  cards.show(states, chosen);
  const first = states.find((state) => !PLOTLESS.includes(state.kind)) ?? states[0];
  if (first && !states.some((state) => state.name === chosen)) choose(first.name);
  showWhyNoPlots();
  at("as-of").textContent = `As of ${new Date().toISOString().slice(11, 19)} UTC`;
}

const everyState = poll("state", { load: () => ask("pipelines"), show: showStates, doubt: () => cards.doubt(), pause: () => STATE_EVERY });

// ---- plots

const chosenState = () => states.find((state) => state.name === chosen);
const hasPlots = () => chosenState() && !PLOTLESS.includes(chosenState().kind);

function choose(name) {
  chosen = name;
  setText(at("plots-title"), `Plots of ${name}`);
  at("drawn").hidden = true;
  at("no-data").hidden = true;
  charts.clear();
  unsay("plots");
  cards.show(states, chosen);
  showWhyNoPlots();
  void everySeries();
}

function showWhyNoPlots() {
  if (!chosenState() || hasPlots()) return;
  unsay("plots");
  at("drawn").hidden = true;
  at("no-data").hidden = false;
  setText(at("no-data"), `There are no plots: ${chosenState().sentence}`);
}

async function loadSeries() {
  if (!hasPlots()) return null;
  await needChartLibrary();
  const span = at("span").value;
  const answer = await ask(`pipelines/${encodeURIComponent(chosen)}/series?span=${span}&since=${charts.knownUntil(span)}`);
  return { ...answer, span };
}

function showSeries(answer) {
  at("drawn").hidden = false;
  at("drawn").classList.remove("stale");
  charts.add(answer.span, answer, chosenState().batch_budget_seconds);
  at("no-data").hidden = !charts.isEmpty();
  setText(at("no-data"), "Nothing was counted in this time. Plots begin when the application ends its first batch.");
  showMarks(answer.marks);
}

function showMarks(marks) {
  const lines = marks.slice(-20).reverse().map((mark) => {
    const when = new Date(mark.at * 1000).toISOString().slice(0, 19).replace("T", " ");
    const ended = mark.exit_code === null ? "" : ` with exit code ${mark.exit_code}`;
    return `${when} ${mark.program} ${mark.kind === "start" ? "started" : `failed${ended}: ${mark.last_line || "no word"}`}`;
  });
  at("no-marks").hidden = lines.length > 0;
  if (lines.join("\n") === [...at("marks").children].map((each) => each.textContent).join("\n")) return;
  at("marks").replaceChildren(...lines.map((line) => element("li", {}, line)));
}

const everySeries = poll("plots", { load: loadSeries, show: showSeries, doubt: () => at("drawn").classList.add("stale"), pause: () => SERIES_EVERY[at("span").value] });

at("span").addEventListener("change", () => { charts.clear(); void everySeries(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) { void everyState(); void everySeries(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", takeTheme);
if (frame) new MutationObserver(takeTheme).observe(frame.document.documentElement, { attributeFilter: ["class"] });
takeTheme();
void everyState();
