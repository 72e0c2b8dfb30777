"""What all tasks of our Dags have in common."""

from __future__ import annotations

from datetime import timedelta

from plugins.notifiers import FailureNotifier, RecoveryNotifier

TASKS = {"owner": "freshet", "on_failure_callback": FailureNotifier(), "on_success_callback": RecoveryNotifier()}
# dagrun_timeout would skip the tasks and leave no line that says why.
QUICK_TASKS = {**TASKS, "execution_timeout": timedelta(minutes=5)}
ENDING_TASKS = {**TASKS, "execution_timeout": timedelta(hours=3)}
