// Ticks of the axes: round times below, round numbers at the side, and no label twice.
export const SECONDS = { "15m": 900, "1h": 3600, "6h": 21600, "24h": 86400, "7d": 604800, "30d": 2592000 };
const APART = { "15m": 300, "1h": 900, "6h": 3600, "24h": 14400, "7d": 86400, "30d": 432000 }; // seconds from tick to tick
const PARTS = 5; // of an axis at the side, about

const number = (value, digits = 1) => value.toLocaleString("en", { maximumFractionDigits: digits });
const seconds = (value) => (value < 120 ? `${value.toPrecision(3)} s` : value < 7200 ? `${number(value / 60)} min` : `${number(value / 3600)} h`);

// A unit says a value in full, and says which size and name all labels of an axis have, by its largest value.
export const rate = { say: (value) => `${number(value)}/s`, on: () => [1, "/s"] };
export const count = { say: (value) => number(value), on: () => [1, ""], whole: true };
export const mean = { say: (value) => number(value), on: () => [1, ""] };
export const share = { say: (value) => `${number(value * 100)}%`, on: () => [0.01, "%"] };
export const time = { say: seconds, on: (most) => (most < 120 ? [1, " s"] : most < 7200 ? [60, " min"] : most < 172800 ? [3600, " h"] : [86400, " d"]) };

const multiples = (step, least, most) => {
  const first = Math.ceil(least / step), last = Math.floor(most / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => (first + place) * step);
};

export const timeTicks = (span, least, most) => multiples(APART[span] * 1000, least, most).map((value) => ({
  value,
  label: new Date(value).toISOString().slice(...(APART[span] >= 86400 ? [5, 10] : [11, 16])),
}));

export function valueTicks(unit, most) {
  const [size, name] = unit.on(most), part = most / size / PARTS, power = 10 ** Math.floor(Math.log10(part));
  const step = Math.max([1, 2, 5, 10].find((each) => each * power >= part * 0.999) * power, unit.whole ? 1 : 0);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const label = (value) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return multiples(step, 0, most / size).map((value) => ({ value: value * size, label: `${label(value)}${name}` }));
}
