"""A pipeline is one file in `pipelines/`: read and checked here."""

from __future__ import annotations

import tomllib
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.settings import ROOT

Topic = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class PipelineError(Exception):
    """A pipeline's file is missing or wrong; the message names file, field, rule and value."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Section):
    """The topic that events come from."""

    topic: Topic
    partitions: Annotated[int, Field(ge=1, le=1000)]


class Master(_Section):
    """The table that events are enriched from."""

    table: Identifier
    key: Identifier


class Sinks(_Section):
    """Where enriched rows go besides the warehouse."""

    topic: Topic


class Pipeline(_Section):
    """One pipeline's file."""

    name: Identifier
    source: Source
    master: Master
    sinks: Sinks


def load_pipeline(name: str) -> Pipeline:
    """Read `pipelines/<name>.toml`."""
    file = ROOT / "pipelines" / f"{name}.toml"
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in file.parent.glob("*.toml")))
        raise PipelineError(f"pipeline {name!r}: there is no {file.relative_to(ROOT)}; there are: {there}")
    try:
        return Pipeline.model_validate(tomllib.loads(file.read_text()))
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{file.relative_to(ROOT)} is not TOML: {error}") from error
    except ValidationError as error:
        problems = (
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}, got {problem['input']!r}"
            for problem in error.errors()
        )
        raise PipelineError(f"{file.relative_to(ROOT)}: {'; '.join(problems)}") from error
