"""A task's failure is told once, by real mail and HTTP, through the Airflow connections that exist."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MailHandler

from plugins.notifiers import LOST, FailureNotifier, RecoveryNotifier, Told
from plugins.one_line import PermanentExit
from services.ports import free_ports
from tests.posted import posted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message as Mail

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LINE = "sales: stuck; 40 events <b> {{ 1 }} = 2 min behind. Read the log."
LINK = "http://127.0.0.1:8080/dags/sales.watch/runs/1/tasks/watch"
NOWHERE = "http://127.0.0.1:9"


class Variables:
    """Airflow's variables in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def get(self, key: str, default: str | None) -> str | None:
        """Return a variable."""
        return self.kept.get(key, default)

    def set(self, key: str, value: str, description: str) -> None:
        """Set a variable."""
        assert description
        self.kept[key] = value

    def delete(self, key: str) -> None:
        """Delete a variable."""
        del self.kept[key]


class Mailbox(MailHandler):
    """Keeps the mails that arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[Mail] = []

    def prepare_message(self, session: Any, envelope: Any) -> Mail:  # noqa: ANN401, ARG002  # as aiosmtpd has it
        """Keep a mail."""
        mail = message_from_bytes(envelope.content)
        self.mails.append(mail)
        return mail

    def handle_message(self, message: Mail) -> None:
        """Do no more."""


@pytest.fixture
def mailbox() -> Iterator[tuple[int, list[Mail]]]:
    """Run a mail server; return its port and the mails."""
    box = Mailbox()
    (port,) = free_ports(1)
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    yield port, box.mails
    controller.stop()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a web server; return its address and the JSON objects that are posted to it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with posted() as server:
        yield server


@pytest.fixture
def told() -> Told:
    """Return what was told of each task: nothing yet."""
    return Told(Variables())


def context(exception: BaseException | None = None, run_after: datetime = NOON) -> Any:  # noqa: ANN401  # as much of Airflow's context as is used
    """Return the context of a task that has ended."""
    ti = SimpleNamespace(dag_id="sales.watch", task_id="watch", log_url=LINK)
    return {"ti": ti, "exception": exception, "dag_run": SimpleNamespace(run_after=run_after)}


def test_a_failure_arrives_by_every_connection(
    connect_to: Callable[..., None],
    mailbox: tuple[int, list[Mail]],
    web: tuple[str, list[dict[str, Any]]],
    told: Told,
) -> None:
    """A failure's Dag, task, line and link arrive by mail, at Slack and at a webhook; nothing in the line is run."""
    (smtp, mails), (address, arrived) = mailbox, web
    extra = {"to": "night@example.org", "from_email": "freshet@example.org", "disable_ssl": True, "disable_tls": True}
    connect_to("freshet_smtp", conn_type="smtp", host="127.0.0.1", port=smtp, extra=extra)
    connect_to("freshet_slack", conn_type="slackwebhook", password=f"{address}/slack")
    connect_to("freshet_webhook", conn_type="http", host=f"{address}/hook")
    FailureNotifier(told)(context(PermanentExit(LINE)))
    (mail,) = mails
    assert (mail["To"], mail["From"]) == ("night@example.org", "freshet@example.org")
    assert mail["Subject"] == "Freshet: sales.watch.watch failed"
    body = mail.get_payload()[0].get_payload(decode=True).decode()  # type: ignore[union-attr, index]
    assert "sales: stuck; 40 events &lt;b&gt; {{ 1 }} = 2 min behind. Read the log." in body
    assert LINK in body
    slack, webhook = sorted(arrived, key=len)
    assert slack["text"].startswith("Freshet: sales.watch.watch failed\nsales: stuck; 40 events &lt;b&gt; {{ 1 }}")
    assert webhook["text"] == f"Freshet: sales.watch.watch failed\n{LINE}\n{LINK}"
    del webhook["text"]
    assert webhook == {"dag": "sales.watch", "task": "watch", "state": "failed", "line": LINE, "link": LINK}


def test_a_task_that_stays_red_is_told_once_and_its_recovery_once(
    connect_to: Callable[..., None], web: tuple[str, list[dict[str, Any]]], told: Told
) -> None:
    """Three failures in a row give one message, two successes after them one more, and the next failure another one."""
    address, arrived = web
    connect_to("freshet_webhook", conn_type="http", host=address)
    RecoveryNotifier(told)(context())
    for _ in range(3):
        FailureNotifier(told)(context(PermanentExit(LINE)))
    for _ in range(2):
        RecoveryNotifier(told)(context())
    FailureNotifier(told)(context(PermanentExit(LINE)))
    assert [each["state"] for each in arrived] == ["failed", "is well again", "failed"]
    assert arrived[1]["line"] == f"It had failed: {LINE}"


def test_another_failure_of_a_red_task_is_told_and_other_numbers_are_not(
    connect_to: Callable[..., None], web: tuple[str, list[dict[str, Any]]], told: Told
) -> None:
    """While a task is red, a line with other numbers is the same failure; one with other words is told."""
    address, arrived = web
    connect_to("freshet_webhook", conn_type="http", host=address)
    lines = ["sales: stuck; 40 events = 59 s behind", "sales: stuck; 1,240 events = 2 min behind", "sales: not kept"]
    for line in lines:
        FailureNotifier(told)(context(PermanentExit(line)))
    assert [each["line"] for each in arrived] == [lines[0], lines[2]]


def test_an_older_run_that_succeeds_cures_nothing(
    connect_to: Callable[..., None], web: tuple[str, list[dict[str, Any]]], told: Told
) -> None:
    """A run ends well that was triggered before the failed one: nobody is told that the task is well again."""
    address, arrived = web
    connect_to("freshet_webhook", conn_type="http", host=address)
    FailureNotifier(told)(context(PermanentExit(LINE)))
    RecoveryNotifier(told)(context(run_after=NOON - timedelta(minutes=1)))
    assert [each["state"] for each in arrived] == ["failed"]
    RecoveryNotifier(told)(context(run_after=NOON + timedelta(minutes=1)))
    assert [each["state"] for each in arrived] == ["failed", "is well again"]


@pytest.mark.usefixtures("connect_to")
def test_nothing_happens_without_a_connection(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    """Without any of the connections nothing is sent, kept or logged."""
    FailureNotifier(told)(context(PermanentExit(LINE)))
    RecoveryNotifier(told)(context())
    assert told.line("freshet_failed_sales.watch.watch") is None
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_connection_that_does_not_work_is_one_line_and_hinders_no_other(
    connect_to: Callable[..., None],
    web: tuple[str, list[dict[str, Any]]],
    told: Told,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A mail connection without an address is named in one line of the log; the webhook still gets the message."""
    address, arrived = web
    connect_to("freshet_smtp", conn_type="smtp", host="127.0.0.1", port=9)
    connect_to("freshet_webhook", conn_type="http", host=address)
    FailureNotifier(told)(context(PermanentExit(LINE)))
    assert len(arrived) == 1
    (record,) = [record for record in caplog.records if record.name == "plugins.notifiers"]
    assert "'freshet_smtp' must have {\"to\": " in record.getMessage()
    assert record.exc_info is None


def test_a_failure_that_nobody_got_is_told_the_next_time(
    connect_to: Callable[..., None], web: tuple[str, list[dict[str, Any]]], told: Told
) -> None:
    """A failure whose message could not be sent counts as not told, so the next failure is sent."""
    address, arrived = web
    connect_to("freshet_webhook", conn_type="http", host=NOWHERE)
    FailureNotifier(told)(context(PermanentExit(LINE)))
    connect_to("freshet_webhook", conn_type="http", host=address)
    FailureNotifier(told)(context(PermanentExit(LINE)))
    assert len(arrived) == 1


@pytest.mark.parametrize(
    ("exception", "line"),
    [(ValueError("first\nsecond"), "first"), (ValueError(), "ValueError"), (None, LOST)],
)
def test_every_failure_has_a_line(
    connect_to: Callable[..., None],
    web: tuple[str, list[dict[str, Any]]],
    told: Told,
    exception: BaseException | None,
    line: str,
) -> None:
    """The line is the first of the error's message, else its type; a killed task has no error, and says that."""
    address, arrived = web
    connect_to("freshet_webhook", conn_type="http", host=address)
    FailureNotifier(told)(context(exception))
    assert [each["line"] for each in arrived] == [line]
