// Questions to the server, and what to say when there is no good answer.
const PATIENCE = 20000; // milliseconds; a broker that hangs holds an answer up for ten seconds

class Trouble extends Error {}

async function get(path, options) {
  let answer;
  try {
    answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch {
    throw new Trouble("Airflow's web server does not answer: it is away, or it waits for Kafka or MariaDB. In a shell, make status says what is not healthy.");
  }
  if (answer.status === 401) throw new Trouble("You are logged out. Load Airflow's page again and log in.");
  if (answer.ok) return answer;
  const { detail } = await answer.json().catch(() => ({}));
  throw new Trouble(typeof detail === "string" ? detail : `Airflow's web server answers ${answer.status} to ${path}. In a shell, make status says what is not healthy.`);
}

export async function ask(path, options = {}) {
  const answer = await get(path, options);
  return answer.json().catch(() => { throw new Trouble(`The answer to ${path} is cut off, or is not of this page. Load it again.`); });
}

export async function needChartLibrary() {
  if (window.Chart) return;
  await get("web/chart.umd.min.js"); // its error says what is missing
  throw new Trouble("The chart library was not loaded, so there are no plots. Load this page again.");
}

export function lineOf(failure) {
  if (failure instanceof Trouble) return failure.message;
  console.error(failure);
  return `This page has a fault: ${failure.message}. Load it again; if that does not help, report the fault.`;
}
