"""Every error that Freshet raises for a person to read, in one tree.

An error says what is wrong and where, then what to do next. Whoever catches it asks the type whether to try again:

    FreshetError
    ├── PermanentError    time does not cure it: do not retry
    └── TransientError    it can go away by itself: retry

`semistream` and `generator` stand alone. They raise Python's own errors, ValueError and OSError for example, or
subclasses of those.

Standard library only, and no syntax newer than the oldest Python that a user might have: the installer uses this file
before there is a virtual environment.
"""


class FreshetError(Exception):
    """What is wrong and where, and what to do next.

    Args:
        what: parameter, rule and value; or what happened, and where.
        remedy: a sentence that says what to do next.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return "{}. {}".format(self.what.rstrip("."), self.remedy)


class PermanentError(FreshetError):
    """Time does not cure it: whoever catches it does not retry."""


class SettingsError(PermanentError):
    """A setting is missing or breaks its rule."""


class UnfitError(PermanentError):
    """This machine, or a service that runs on it, lacks something that Freshet needs."""


class PipelineError(PermanentError):
    """A pipeline's file is missing or wrong."""


class ConnectionFieldError(PermanentError):
    """A connection in Airflow lacks a field."""


class TableError(PermanentError):
    """A table is missing, or is not what a pipeline's file says."""


class LoadError(PermanentError):
    """The warehouse does not take rows as they are."""


class SnapshotError(PermanentError):
    """A snapshot of master data is missing, damaged or replaced, or does not fit its pipeline."""


class ForgottenChangesError(PermanentError):
    """The change log no longer has all changes that a reader has missed."""


class CheckpointError(PermanentError):
    """A file of Spark's checkpoint is damaged."""


class LostEventsError(PermanentError):
    """A topic no longer has events that were not read yet."""


class QualityError(PermanentError):
    """Data is not as its suite expects, or there is no such suite."""


class StreamError(PermanentError):
    """A stream that is wanted is not well."""


class GaveUpError(PermanentError):
    """The work failed, and is not tried again."""


class TransientError(FreshetError):
    """It can go away by itself: whoever catches it can retry."""


class NotInTimeError(TransientError):
    """A condition did not come true in time."""


class TopicError(TransientError):
    """A topic cannot be read: it is missing, it was recreated, or no broker answers."""


class AlreadyRunningError(TransientError):
    """Another application works on the same pipeline, or another run on the same master table."""


class EndedError(TransientError):
    """A program that an Airflow task runs has ended before its work was done."""
