// The plots: which counters each shows, and the points that are known. Chart.js draws.
import { SECONDS, count, mean, rate, share, time, timeTicks, valueTicks } from "./axes.js";

const TABLE_ROWS = 12;

const PLOTS = [
  { title: "Events", unit: rate, lines: { events_per_second: "in", enriched_per_second: "enriched", unmatched_per_second: "unmatched", rejected_per_second: "rejected" } },
  { title: "Latency from Kafka to the warehouse", unit: time, lines: { latency_p50: "p50", latency_p99: "p99", latency_most: "worst" } },
  { title: "Lag: events that wait in the topic", unit: count, lines: { lag: "events" } },
  { title: "Mean batch time by phase", unit: time, stacked: true, budget: true, lines: { phase_source: "source", phase_read: "read", phase_join: "join", phase_load: "load", phase_messages: "messages" } },
  { title: "Longest batch", unit: time, budget: true, lines: { batch_seconds_most: "longest" } },
  { title: "Where a master row was found", unit: share, lines: { cache_hit_share: "cache hit", not_cached_share: "not cached", absent_share: "absent" } },
  { title: "Pages read for 1,000 events", unit: mean, lines: { pages_per_1000: "pages" } },
  { title: "Events shed", unit: rate, lines: { shed_per_second: "shed", replayed_per_second: "replayed" } },
  { title: "Shed events that wait on disk", unit: count, lines: { shed_waiting: "events" } },
  { title: "Master data: version", unit: count, stepped: true, lines: { snapshot_version: "version" } },
  { title: "Master data: age", unit: time, lines: { snapshot_age_seconds: "age" } },
  { title: "Master data: changes waiting for a refresh", unit: count, lines: { changes_waiting: "changes" } },
];

// Vertical lines where a program started or failed. Only the stream's failures are red; the generator's lines are thin dots.
const STYLES = {
  start: { width: 1, dashes: [], colour: "--faint" },
  failure: { width: 2, dashes: [4, 3], colour: "--c4" },
  generator: { width: 1, dashes: [1, 4], colour: "--faint" },
};

const marksOnAxis = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const { ctx, chartArea: area, scales } = chart;
    const colours = Object.fromEntries(Object.entries(STYLES).map(([kind, style]) => [kind, colour(style.colour)]));
    for (const mark of chart.options.marks ?? []) {
      const x = scales.x.getPixelForValue(mark.at * 1000);
      if (x < area.left || x > area.right) continue;
      const kind = mark.program === "generator" ? "generator" : mark.kind;
      ctx.save();
      ctx.strokeStyle = colours[kind];
      ctx.lineWidth = STYLES[kind].width;
      ctx.setLineDash(STYLES[kind].dashes);
      ctx.beginPath();
      ctx.moveTo(x, area.top);
      ctx.lineTo(x, area.bottom);
      ctx.stroke();
      ctx.restore();
    }
  },
};

const labelOf = (value, place, ticks) => ticks[place].label; // as axes.js made it
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Charts {
  constructor(place) {
    this.place = place;
    this.drawn = [];
    this.clear();
  }

  clear() {
    this.span = "";
    this.points = { at: [] };
    this.marks = [];
  }

  isEmpty() {
    return this.points.at.length === 0;
  }

  // The newest point may still grow, so it is asked for again.
  knownUntil(span) {
    return span === this.span && !this.isEmpty() ? this.points.at.at(-1) : 0;
  }

  add(span, answer, budget) {
    if (span !== this.span) this.clear();
    this.span = span;
    const oldest = answer.now - SECONDS[span], fresh = answer.at[0] ?? Infinity;
    const kept = this.points.at.map((moment, place) => (moment >= oldest && moment < fresh ? place : -1)).filter((place) => place >= 0);
    for (const key of Object.keys(answer).filter((name) => Array.isArray(answer[name]) && name !== "marks")) {
      const known = this.points[key] ?? [];
      this.points[key] = [...kept.map((place) => known[place] ?? null), ...answer[key]];
    }
    this.marks = answer.marks;
    this.now = answer.now;
    this.budget = budget;
    this.draw();
  }

  recolour() {
    for (const each of this.drawn) each.chart.destroy();
    this.drawn = [];
    this.place.replaceChildren();
    if (this.span) this.draw();
  }

  draw() {
    if (!this.drawn.length) {
      this.place.replaceChildren();
      this.drawn = PLOTS.map((plot) => this.make(plot));
    }
    for (const each of this.drawn) this.update(each);
  }

  make(plot) {
    const box = document.createElement("figure");
    box.className = "chart";
    const title = document.createElement("h3"), holder = document.createElement("div"), canvas = document.createElement("canvas");
    title.textContent = plot.title;
    holder.className = "plot";
    canvas.setAttribute("role", "img");
    holder.append(canvas);
    const more = document.createElement("details"), label = document.createElement("summary"), numbers = document.createElement("div");
    label.textContent = "Numbers";
    numbers.className = "numbers";
    more.append(label, numbers);
    more.addEventListener("toggle", () => this.tabulate(plot, more, numbers));
    box.append(title, holder, more);
    this.place.append(box);
    const text = colour("--faint"), line = colour("--line");
    const chart = new window.Chart(canvas, {
      type: "line",
      plugins: [marksOnAxis],
      data: { datasets: Object.values(plot.lines).map((label, place) => this.dataset(plot, label, place)) },
      options: {
        animation: false, parsing: false, normalized: true, maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        elements: { point: { radius: 0, hitRadius: 8 }, line: { borderWidth: 1.5 } },
        scales: {
          x: { type: "linear", grid: { color: line }, ticks: { color: text, maxRotation: 0, callback: labelOf }, afterBuildTicks: (axis) => { axis.ticks = timeTicks(this.span, axis.min, axis.max); } },
          y: { beginAtZero: true, stacked: Boolean(plot.stacked), grid: { color: line }, ticks: { color: text, callback: labelOf }, afterBuildTicks: (axis) => { axis.ticks = valueTicks(plot.unit, axis.max); } },
        },
        plugins: {
          legend: { labels: { color: text, boxWidth: 12 } },
          tooltip: {
            callbacks: {
              title: (items) => `${new Date(items[0].parsed.x).toISOString().slice(0, 19).replace("T", " ")} UTC`,
              label: (item) => `${item.dataset.label}: ${plot.unit.say(item.parsed.y)}`,
            },
          },
        },
      },
    });
    return { plot, chart, canvas, more, numbers };
  }

  dataset(plot, label, place) {
    const its = colour(`--c${(place % 5) + 1}`);
    return { label, data: [], borderColor: its, backgroundColor: plot.stacked ? `${its}55` : its, fill: plot.stacked ? "stack" : false, stepped: Boolean(plot.stepped), borderDash: place === 2 && !plot.stacked ? [5, 3] : [] };
  }

  update({ plot, chart, canvas, more, numbers }) {
    const when = this.points.at;
    Object.keys(plot.lines).forEach((key, place) => {
      const values = this.points[key] ?? [];
      const shown = (index) => values[index] !== null && values[index] !== undefined;
      chart.data.datasets[place].data = when.map((moment, index) => ({ x: moment * 1000, y: values[index] ?? null }));
      // A line needs two points; one that stands alone is a dot.
      chart.data.datasets[place].pointRadius = when.map((_, index) => (shown(index) && !shown(index - 1) && !shown(index + 1) ? 2 : 0));
    });
    if (plot.budget) this.showBudget(chart);
    chart.options.scales.x.min = (this.now - SECONDS[this.span]) * 1000;
    chart.options.scales.x.max = this.now * 1000;
    chart.options.marks = this.marks;
    chart.update("none");
    canvas.setAttribute("aria-label", `${plot.title}. ${this.newest(plot)}`);
    this.tabulate(plot, more, numbers);
  }

  showBudget(chart) {
    const label = "budget", others = chart.data.datasets.filter((each) => each.label !== label);
    const ends = [(this.now - SECONDS[this.span]) * 1000, this.now * 1000];
    const its = { label, stack: label, borderColor: colour("--c4"), backgroundColor: colour("--c4"), borderDash: [2, 3], data: ends.map((x) => ({ x, y: this.budget })) };
    chart.data.datasets = this.budget ? [...others, its] : others;
  }

  newest(plot) {
    const said = Object.entries(plot.lines).map(([key, label]) => {
      const value = (this.points[key] ?? []).findLast((each) => each !== null && each !== undefined);
      return value === undefined ? `${label}: nothing counted` : `${label}: ${plot.unit.say(value)}`;
    });
    return `Newest: ${said.join(", ")}.`;
  }

  tabulate(plot, more, numbers) {
    if (!more.open) return;
    const table = document.createElement("table"), head = table.createTHead().insertRow();
    for (const name of ["UTC", ...Object.values(plot.lines)]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.append(cell);
    }
    const body = table.createTBody(), length = this.points.at.length;
    for (let place = length - 1; place >= Math.max(0, length - TABLE_ROWS); place -= 1) {
      const row = body.insertRow();
      row.insertCell().textContent = new Date(this.points.at[place] * 1000).toISOString().slice(5, 19).replace("T", " ");
      for (const key of Object.keys(plot.lines)) {
        const value = this.points[key]?.[place];
        row.insertCell().textContent = value === null || value === undefined ? "–" : plot.unit.say(value);
      }
    }
    numbers.replaceChildren(table);
  }
}
