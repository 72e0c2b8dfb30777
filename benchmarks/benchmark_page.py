"""What the page in Airflow costs beside a million rows of counters: `python -m benchmarks.benchmark_page`.

It starts Kafka, MariaDB and Airflow, inserts a million batches over a month with their steps of time, opens the page in
a headless Chromium, and prints:

- first paint, and the time until all plots are drawn, in the browser;
- the processor time of Airflow's api-server for one update of the state and of the plots, for each span.
"""

import json
import shutil
import time
from datetime import UTC, datetime
from statistics import median

import psutil
from playwright.sync_api import Page, sync_playwright

from benchmarks.stream.own_services import own_services
from foundation.connections import connect, login
from foundation.settings import ROOT, Settings
from services import browser, stack
from services.airflow import ADMIN
from services.airflow_api import AirflowApi
from spark_apps.monitoring.batch_counters import ROLLS
from spark_apps.monitoring.latency import LABELS
from spark_apps.monitoring.rollups import KEPT_SECONDS, Rollup
from spark_apps.monitoring.series import RANGES
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.tables import create_tables
from spark_apps.pipeline.topics import create_topics

ROWS = 1_000_000
UPDATES = 5
PAINT_GOAL_MS, UPDATE_GOAL_MS = 1000.0, 100.0
PLOTS = 12


def fill(config: Settings) -> None:
    """Insert a million batches, and the rollups that an application would have kept of them."""
    names = list(ROLLS)
    values = ", ".join("'{}'" if name in ("rejected_by_reason", "latency_seconds") else "1" for name in names)
    row = dict.fromkeys(names, 12345.678) | {
        "rejected_by_reason": {f"field{number}: must be a whole number": 1234 for number in range(10)},
        "latency_seconds": dict.fromkeys(LABELS[30:60], 123_456),
        "finished_at": datetime.now(UTC),
    }
    counts = json.dumps(vars(Rollup.of(row, ROLLS)), separators=(",", ":"))
    with connect(login("owner", config)) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO batch_counters (pipeline, source, finished_at, {', '.join(names)}) SELECT 'sales', 1, "
            f"UTC_TIMESTAMP() - INTERVAL seq * 2 SECOND, {values} FROM seq_1_to_{ROWS}"
        )
        for step, kept in KEPT_SECONDS.items():
            cursor.execute(
                "INSERT INTO counter_rollup SELECT 'sales', %s, FROM_UNIXTIME(FLOOR(UNIX_TIMESTAMP(UTC_TIMESTAMP()) "
                f"/ %s) * %s) - INTERVAL seq * %s SECOND, %s FROM seq_1_to_{kept // step}",
                (step, step, step, step, counts),
            )
        connection.commit()


def log_in(page: Page, config: Settings) -> None:
    """Log in by Airflow's form."""
    page.goto(config.airflow_api)
    page.get_by_label("Username").fill(ADMIN)
    page.locator("input[type=password]").fill(config.secret("airflow_password"))
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Freshet").first.wait_for()


def measure_paint(page: Page, config: Settings) -> tuple[float, float]:
    """Open the page and return the milliseconds until its first paint, and until all plots are drawn."""
    page.goto(f"{config.airflow_api}/freshet/")
    page.locator("canvas[aria-label]").nth(PLOTS - 1).wait_for()
    drawn = page.evaluate("performance.now()")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return paint, drawn


def processor_ms(servers: list[psutil.Process]) -> float:
    """Return the processor time that the api-server has used until now, in milliseconds."""
    return sum(sum(each.cpu_times()[:2]) for each in servers) * 1000


def measure_updates(config: Settings, paths: list[str]) -> float:
    """Ask for paths as the page does, and return the api-server's milliseconds of processor time for that."""
    servers = [
        each.process for each in stack.started() if each.state == config.state and "api" in each.command_line
    ]  # fmt: skip
    with AirflowApi(config) as api:
        for path in paths:
            api.get(path)
        time.sleep(1.5)  # an answer is given again for a second
        used = []
        for _ in range(UPDATES):
            before = processor_ms(servers)
            for path in paths:
                api.get(path)
            used.append(processor_ms(servers) - before)
            time.sleep(1.2)
    return sum(used) / len(used)


def main() -> None:
    """Print the table."""
    chromium = browser.find()
    if chromium is None:
        print("not measured: there is no Chromium. To install one, type: python -m services.browser")
        return
    with own_services() as config:
        config.pipelines.mkdir()
        shutil.copy(ROOT / "pipelines" / "sales.toml", config.pipelines)
        create_tables(login("owner", config), read_pipeline("sales"))
        create_topics(config.kafka_bootstrap, read_pipeline("sales"))
        stack.up(lambda _line: None)
        fill(config)
        print(f"{ROWS:,} rows of batch_counters, and their steps of time")
        with sync_playwright() as library:
            opened = library.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = opened.new_page(viewport={"width": 1400, "height": 1000})
            log_in(page, config)
            paints = [measure_paint(page, config) for _ in range(5)]
            opened.close()
        paint, drawn = (median(times) for times in zip(*paints, strict=True))
        print(f"first paint {paint:.0f} ms (goal {PAINT_GOAL_MS:.0f}), all plots drawn {drawn:.0f} ms; medians of 5")
        since = time.time() - 10
        rounds = {"the sentence and the buttons": ["/freshet/pipelines"]}
        rounds |= {
            f"newest points of {span}": [f"/freshet/pipelines/sales/series?span={span}&since={since}"]
            for span in RANGES
        }
        rounds |= {f"all points of {span}": [f"/freshet/pipelines/sales/series?span={span}"] for span in RANGES}
        for what, paths in rounds.items():
            print(f"{what:<30} {measure_updates(config, paths):6.1f} ms of the api-server (goal {UPDATE_GOAL_MS:.0f})")


if __name__ == "__main__":
    main()
