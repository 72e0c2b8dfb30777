"""Read and check a pipeline's file in `pipelines/`; docs/pipelines.md says what each field means."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from foundation.errors import PipelineError
from foundation.settings import settings
from spark_apps.pipeline.event_field import KEYS, NUMBERS, EventField
from spark_apps.pipeline.expressions import check_expression
from spark_apps.pipeline.json_path import tree_of

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

# Kafka's rule for names of topics; a name of dots only is not allowed.
Topic = Annotated[str, Field(max_length=249, pattern=r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$")]
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
# The characters that an expression can have; check_expression has the whole rule.
Expression = Annotated[str, Field(pattern=r"^[a-z0-9_ .+*/()-]+$")]
# spark_apps/enriching/worker_join.py has the class of each; "auto" is the one that the planner chooses.
JoinName = Literal[
    "auto", "chybridjoin", "hybridjoin", "x_hybridjoin", "optimised_x_hybridjoin",
    "cmeshjoin", "meshjoin", "r_meshjoin", "ordered_meshjoin", "cinlj", "inlj",
]  # fmt: skip
CORRECT = "Correct the file; docs/pipelines.md says what each field means."
LEAST_MEMORY_MB, MOST_MEMORY_MB = 8, 2**20
LONGEST_NAME = 54  # MariaDB allows 64 characters, and a table is called <name>_unmatched
LONGEST_MASTER = 50  # the same: a trigger is called <table>_change_update
BESIDE_KEYS = ("access_frequency", "change_id", "position", "weight")  # our columns in tables that have the key's, too
BESIDE_ROWS = "access_rank"  # our column in the ranked copy, which also has columns of the master table
# The position of an event: the primary key of every table of a pipeline. `source` is the number of an incarnation.
POSITION = ("source", "kafka_partition", "kafka_offset")
TOPIC_POSITION = POSITION[1:]  # within one incarnation


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Source(_Section):
    """The topic of the events, and the fields that an event must have."""

    topic: Topic
    partitions: Annotated[int, Field(ge=1, le=1000)]
    fields: Annotated[dict[Identifier, EventField], Field(min_length=1)]

    @property
    def origins(self) -> set[str]:
        """The parts of a message that fields come from, without its value."""
        return {field.origin for field in self.fields.values() if field.origin}

    @field_validator("fields")
    @classmethod
    def _paths_go_together(cls, fields: dict[str, EventField]) -> dict[str, EventField]:
        tree_of({name: field.steps(name) for name, field in fields.items() if not field.origin})
        return fields


class Master(_Section):
    """The master table: its key, the columns that events get, and the column that says when a row was changed."""

    table: Annotated[Identifier, Field(max_length=LONGEST_MASTER)]
    key: Annotated[list[Identifier], Field(min_length=1)]
    columns: Annotated[list[Identifier], Field(min_length=1)]
    changed: Identifier


class Enriched(_Section):
    """The columns of a fact, and what the view and the enriched topic compute from them."""

    topic: Topic | None = None
    columns: Annotated[list[Identifier], Field(min_length=1)]
    described_by: Identifier
    computed: dict[Identifier, Expression] = {}


class Pipeline(_Section):
    """One pipeline's file."""

    name: Annotated[Identifier, Field(max_length=LONGEST_NAME)]
    memory_mb: Annotated[int, Field(ge=LEAST_MEMORY_MB, le=MOST_MEMORY_MB)]
    join: JoinName = "auto"
    batch_seconds: Annotated[float, Field(ge=0.1, le=3600)] | None = None
    source: Source
    master: Master
    enriched: Enriched

    @model_validator(mode="after")
    def _names_do_not_clash(self) -> Self:
        fields = self.source.fields
        if reserved := [name for name in POSITION if name in {*fields, *self.master.columns}]:
            raise ValueError(f"source.fields and master.columns must not have the names {POSITION}, got {reserved}")
        if reserved := [name for name in self.master.key if name in BESIDE_KEYS]:
            raise ValueError(f"master.key must not have the names {BESIDE_KEYS}, got {reserved}")
        if BESIDE_ROWS in {*self.master.key, *self.master.columns, self.master.changed}:
            raise ValueError(f"master.key, columns and changed must not have the name {BESIDE_ROWS!r}, but one does")
        if self.name == self.master.table:
            raise ValueError(f"name must not be master.table, because the view gets this name, got {self.name!r}")
        if self.enriched.topic == self.source.topic:
            raise ValueError(f"enriched.topic must not be source.topic, got {self.enriched.topic!r}")
        for parameter, names in (
            ("master.key", self.master.key),
            ("master.columns", self.master.columns),
            ("enriched.columns", self.enriched.columns),
        ):
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{parameter} must have each name once, got {twice} more than once")
        if known := [name for name in self.enriched.computed if name in {*fields, *self.master.columns}]:
            raise ValueError(f"enriched.computed must not have names of source.fields or master.columns, got {known}")
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        fields = self.source.fields
        if self.batch_seconds is not None and self.join not in {"auto", "chybridjoin"}:
            raise ValueError(
                f"batch_seconds needs the join 'auto' or 'chybridjoin', the only one that can shed, got {self.join!r}"
            )
        if unknown := [name for name in self.master.key if name not in fields]:
            raise ValueError(f"master.key must have names of source.fields only, got {unknown}")
        if doubled := [name for name in self.master.columns if name in fields]:
            raise ValueError(f"master.columns must not have names of source.fields, got {doubled}")
        known = {*fields, *self.master.columns}
        if unknown := [name for name in self.enriched.columns if name not in known]:
            raise ValueError(f"enriched.columns must have names of source.fields or master.columns only, got {unknown}")
        describing = [name for name in self.enriched.columns if name in {*self.master.key, *self.master.columns}]
        if self.enriched.described_by not in describing:
            raise ValueError(
                f"enriched.described_by must be in enriched.columns and in the master table: one of {describing}, "
                f"got {self.enriched.described_by!r}"
            )
        if unfit := {name: fields[name].type for name in self.master.key if fields[name].kind not in KEYS}:
            raise ValueError(f"master.key must have fields of the types {', '.join(sorted(KEYS))}, got {unfit}")
        numbers = [name for name in self.enriched.columns if name not in fields or fields[name].kind in NUMBERS]
        for name, expression in self.enriched.computed.items():
            check_expression(expression, numbers, f"enriched.computed.{name}")
        return self


def pipeline_names(folder: Path | None = None) -> list[str]:
    """Return the name of each file in a folder, by default that of the setting `pipelines`."""
    return sorted(file.stem for file in (folder or settings().pipelines).glob("*.toml"))


def read_pipeline(name: str, folder: Path | None = None) -> Pipeline:
    """Read `<name>.toml` in a folder, by default that of the setting `pipelines`.

    Raises:
        PipelineError: there is no such file, or it breaks a rule.
    """
    file = (folder or settings().pipelines) / f"{name}.toml"
    shown = f"{file.parent.name}/{file.name}"
    if not file.is_file():
        names = ", ".join(pipeline_names(file.parent))
        raise PipelineError(f"pipeline {name!r}: there is no {shown}", f"Name one of: {names}.")
    try:
        pipeline = _read(file, shown)
    except (ValueError, RecursionError, MemoryError) as error:
        said = str(error) or type(error).__name__
        raise PipelineError(
            f"{shown} must not have numbers or nesting beyond Python's limits: {said}", CORRECT
        ) from error
    if pipeline.name != name:
        raise PipelineError(
            f"{shown}: name must be that of the file, {name!r}, got {pipeline.name!r}",
            "Rename the file or the pipeline.",
        )
    return pipeline


def _read(file: Path, shown: str) -> Pipeline:
    try:
        return Pipeline.model_validate(tomllib.loads(file.read_text("utf-8-sig")))
    except OSError as error:
        raise PipelineError(f"{shown} must be readable: {error.strerror}", "Correct its rights.") from error
    except UnicodeDecodeError as error:
        raise PipelineError(f"{shown} must be UTF-8: {error}", "Save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{shown} must be TOML: {error}", CORRECT) from error
    except ValidationError as error:
        problems = (_shown(problem) for problem in error.errors())
        raise PipelineError(f"{shown}: {'; '.join(problems)}", CORRECT) from error


def _shown(problem: ErrorDetails) -> str:
    """Return field, rule and value of what pydantic found."""
    rule = problem["msg"].removeprefix("Value error, ")
    if problem["loc"]:
        rule = f"{'.'.join(map(str, problem['loc']))}: {rule}"
    return rule if problem["type"] == "missing" or ", got " in rule else f"{rule}, got {problem['input']!r}"
