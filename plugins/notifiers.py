"""Tell people when a task has failed, and when it is well again.

Each of these Airflow connections is used if it exists: `freshet_smtp`, `freshet_slack`, `freshet_webhook`. A task that
fails again and again is told once: the Variable `freshet_failed_<dag>.<task>` keeps what was told. The state of the
previous run would not do: Airflow knows none for a run that an asset has triggered.
"""

from __future__ import annotations

import html
import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, BaseNotifier, Variable
from airflow.sdk.exceptions import AirflowNotFoundException

from foundation.errors import ConnectionFieldError

# Airflow's own notifiers take a second to import: they are imported where they are used.

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.sdk import Context

log = logging.getLogger(__name__)
SECONDS = 10  # for an answer of Slack or of a webhook
LOST = "the task was killed, or its worker is gone. Its log says how far it came."


@dataclass(frozen=True)
class Message:
    """What is told: which task, whether it failed or is well again, the line that says what is wrong, and a link."""

    dag: str
    task: str
    state: str
    line: str
    link: str

    @property
    def subject(self) -> str:
        """The first line."""
        return f"Freshet: {self.dag}.{self.task} {self.state}"

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.subject}\n{self.line}\n{self.link}"


class Told:
    """What was told of each task that has failed and is not well yet, as Variables of Airflow."""

    def __init__(self, variables: Any = Variable) -> None:
        self._variables = variables

    def line(self, key: str) -> str | None:
        """Return the line that was told; None if the task was well."""
        found = self._variables.get(key, default=None)
        return None if found is None else str(found).partition(" ")[2]

    def asked_at(self, key: str) -> str:
        """Return when the run was triggered whose failure was told."""
        return str(self._variables.get(key, default="")).partition(" ")[0]

    def keep(self, key: str, line: str, asked_at: str) -> None:
        """Keep the line that was told, and when the failed run was triggered."""
        about = "Freshet has told this failure; remove it to be told again."
        self._variables.set(key, f"{asked_at} {line}", description=about)

    def forget(self, key: str) -> None:
        """Forget what was told: the task is well again."""
        self._variables.delete(key)


class FailureNotifier(BaseNotifier):
    """Tells the first failure of a task, by every connection that exists."""

    def __init__(self, told: Told | None = None) -> None:
        super().__init__()
        self._told = told or Told()

    def notify(self, context: Context) -> None:
        """Send the message, unless the same failure was told and the task has not been well since."""
        message = message_of(context, "failed", line_of(context))
        told = self._told.line(_key(message))
        if connections() and (told is None or _kind(told) != _kind(message.line)) and send(message):
            self._told.keep(_key(message), message.line, asked_at(context))


class RecoveryNotifier(FailureNotifier):
    """Tells once that a task is well again whose failure was told."""

    def notify(self, context: Context) -> None:
        """Send the message if there is something to take back."""
        message = message_of(context, "is well again", "")
        line = self._told.line(_key(message))
        if line is not None and self._told.asked_at(_key(message)) <= asked_at(context):  # an older run cures nothing
            send(message_of(context, "is well again", f"It had failed: {line}"))
            self._told.forget(_key(message))


def asked_at(context: Context) -> str:
    """Return when a run was triggered, as a text that sorts by time."""
    return context["dag_run"].run_after.astimezone(UTC).isoformat(timespec="microseconds")


def message_of(context: Context, state: str, line: str) -> Message:
    """Return the message about a task."""
    ti = context["ti"]
    return Message(ti.dag_id, ti.task_id, state, line, ti.log_url)


def line_of(context: Context) -> str:
    """Return the one line that says why a task has failed."""
    error = context.get("exception")
    said = "" if error is None else str(error)
    return next(iter(said.strip().splitlines()), type(error).__name__ if error else LOST)


def connections() -> Mapping[str, Any]:
    """Return the connections that exist, by id."""
    found = {}
    for name in CHANNELS:
        with suppress(AirflowNotFoundException):
            found[name] = BaseHook.get_connection(name)
    return found


def send(message: Message) -> bool:
    """Send a message by every connection that exists; return whether one took it."""
    sent = False
    for name, connection in connections().items():
        try:
            CHANNELS[name](message, connection).notify({})
            sent = True
        except Exception as error:  # noqa: BLE001  # each service has errors of its own, and the task's error matters more
            log.error("no message by connection %r: %s", name, str(error) or type(error).__name__)  # noqa: TRY400
    return sent


def by_mail(message: Message, connection: Any) -> BaseNotifier:
    """Return Airflow's notifier that sends a mail to the addresses in the field `extra` of the connection."""
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    to = connection.extra_dejson.get("to")
    if not to:
        raise ConnectionFieldError(
            f'connection {connection.conn_id!r} must have {{"to": "name@example.org"}} in its field `extra`',
            "Set it in Admin, Connections.",
        )
    body = "<br>".join(html.escape(line) for line in message.text.splitlines())
    return SmtpNotifier(to=to, subject=message.subject, html_content=body, smtp_conn_id=connection.conn_id)


def by_slack(message: Message, connection: Any) -> BaseNotifier:
    """Return Airflow's notifier that posts to a channel of Slack."""
    from airflow.providers.slack.notifications.slack_webhook import SlackWebhookNotifier

    text = html.escape(message.text, quote=False)  # as Slack wants it
    return SlackWebhookNotifier(slack_webhook_conn_id=connection.conn_id, text=text, timeout=SECONDS)


def by_webhook(message: Message, connection: Any) -> BaseNotifier:
    """Return Airflow's notifier that posts a JSON object to any address."""
    from airflow.providers.http.notifications import HttpNotifier

    said = {"dag": message.dag, "task": message.task, "state": message.state, "line": message.line}
    return HttpNotifier(
        http_conn_id=connection.conn_id,
        json={**said, "link": message.link, "text": message.text},
        extra_options={"timeout": SECONDS},
    )


def _kind(line: str) -> str:
    """Return a failure's line without its numbers and durations, which change while it stays the same failure."""
    return re.sub(r"\d[\d,.:-]*( s| min| h)?\b", "#", line)


def _key(message: Message) -> str:
    return f"freshet_failed_{message.dag}.{message.task}"


CHANNELS: Mapping[str, Callable[[Message, Any], BaseNotifier]] = {
    "freshet_smtp": by_mail,
    "freshet_slack": by_slack,
    "freshet_webhook": by_webhook,
}
