"""Each error states what is wrong and what to do; its class tells whether a retry can help."""

from __future__ import annotations

import inspect
import pickle

import pytest

from foundation import errors
from foundation.errors import FreshetError, PermanentError, TransientError

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_lasts_or_may_pass(kind: type[Exception]) -> None:
    """Every error class is either permanent or transient, never both."""
    assert issubclass(kind, FreshetError)
    assert kind is FreshetError or issubclass(kind, PermanentError) != issubclass(kind, TransientError)
    assert kind.__doc__


@pytest.mark.parametrize("what", ["port 80 is taken", "port 80 is taken."])
def test_an_error_is_one_line_with_what_to_do_next(what: str) -> None:
    """An error is one line, cause then remedy, whatever punctuation ends the cause."""
    error = PermanentError(what, "Choose another one.")
    assert str(error) == "port 80 is taken. Choose another one."


def test_an_error_without_a_remedy_cannot_be_made() -> None:
    """Creating an error without a remedy is a TypeError."""
    with pytest.raises(TypeError, match="remedy"):
        PermanentError("port 80 is taken")  # type: ignore[call-arg]


def test_an_error_survives_the_way_between_processes() -> None:
    """An error keeps its text when it is pickled, as exceptions of worker processes are."""
    error = pickle.loads(pickle.dumps(TransientError("no broker answers", "Start it.")))  # noqa: S301  # our own
    assert str(error) == "no broker answers. Start it."
