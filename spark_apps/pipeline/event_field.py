"""What a pipeline's file says about a field of its events; docs/pipelines.md says what each option means."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, Self, get_args
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from spark_apps.pipeline.json_path import Step, steps_of
from spark_apps.pipeline.json_values import UnreadableEventError, read_json

FieldType = Literal[
    "int64", "int32", "uint32", "float64", "decimal", "boolean",
    "string", "uuid", "timestamp", "date", "json", "bytes",
]  # fmt: skip
NUMBERS = {"int64", "int32", "uint32", "float64", "decimal"}
IN_TEXTS = NUMBERS | {"string", "uuid", "timestamp"}  # what keys and headers can have
KEYS = {"int64", "int32", "uint32", "string", "uuid"}
MOST_DIGITS, MOST_FRACTION_DIGITS = 38, 30  # that Arrow and MariaDB have
HEADER = "header:"  # begins the origin of a field that is in a header of this name
_DECIMAL = re.compile(r"decimal\((\d{1,2}), ?(\d{1,2})\)")


class EventField(BaseModel):
    """One field of the events: its type, where it is, and in which form.

    Attributes:
        type: the name of a type; `decimal(p, s)` has its digits and those of its fraction.
        nullable: whether it may be null or missing, and is NULL then.
        default: what it is when it is null or missing.
        origin: the part of the message that has it, if not the event: `key`, `header:<name>` or `timestamp`.
        path: where an event has it; by default a field of the event itself that has the column's name.
        quoted: whether a number may stand in quotes.
        zone: the time zone of times without an offset.
        unit: what a time that is a number counts since 1970.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    type: str
    nullable: bool = False
    default: str | int | float | bool | None = None
    origin: str | None = Field(default=None, alias="from", pattern=r"^(key|timestamp|header:.+)$")
    path: str | None = None
    quoted: bool = False
    zone: str | None = None
    unit: Literal["s", "ms"] | None = None

    @property
    def kind(self) -> str:
        """The name of the type, without the digits of a decimal."""
        return self.type.partition("(")[0]

    @property
    def digits(self) -> tuple[int, int]:
        """The digits of a decimal, and how many of them are its fraction."""
        found = _DECIMAL.fullmatch(self.type)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def optional(self) -> bool:
        """Whether an event need not have it."""
        return self.nullable or self.default is not None

    def steps(self, name: str) -> tuple[Step, ...]:
        """Return the path to the field; `name` is the column's."""
        return (name,) if self.path is None else steps_of(self.path)

    @model_validator(mode="before")
    @classmethod
    def _from_the_type_alone(cls, value: Any) -> Any:  # noqa: ANN401  # whatever the file has
        return {"type": value} if isinstance(value, str) else value

    @field_validator("type")
    @classmethod
    def _is_a_type(cls, value: str) -> str:
        found = _DECIMAL.fullmatch(value)
        if found:
            digits, fraction = int(found[1]), int(found[2])
            if not (1 <= digits <= MOST_DIGITS and fraction <= min(digits, MOST_FRACTION_DIGITS)):
                raise ValueError(
                    f"decimal(p, s) must have p of 1 to {MOST_DIGITS} digits, of which s, at most "
                    f"{MOST_FRACTION_DIGITS}, are the fraction"
                )
        elif value == "decimal" or value not in get_args(FieldType):
            shown = ", ".join(get_args(FieldType)).replace("decimal", "decimal(p, s)")
            raise ValueError(f"must be one of {shown}")
        return value

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        if value is not None:
            steps_of(value)
        return value

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ZoneInfo(value)
            except (KeyError, ValueError, OSError):  # unknown, not a name, a folder of zones
                raise ValueError("must be a time zone like Europe/Berlin or UTC") from None
        return value

    @model_validator(mode="after")
    def _options_suit_the_type(self) -> Self:
        if (self.zone or self.unit) and self.kind != "timestamp":
            raise ValueError(f"zone and unit are for the type timestamp, got {self.type!r}")
        if self.zone and self.unit:
            raise ValueError(
                f"zone is for times as texts, unit for times as numbers, got {self.zone!r} and {self.unit!r}"
            )
        if self.quoted and not (self.kind in NUMBERS or self.unit):
            raise ValueError(f"quoted is for numbers, got {self.type!r}")
        if self.origin:
            self._check_origin()
        if self.nullable and self.default is not None:
            raise ValueError(f"a field with a default is never null: leave out nullable, got {self.default!r}")
        try:
            self.default_value()
        except (UnreadableEventError, json.JSONDecodeError) as rule:
            raise ValueError(f"default {rule}, got {self.default!r}") from None
        return self

    def _check_origin(self) -> None:
        if self.path is not None:
            raise ValueError(f"path and from exclude each other, got {self.path!r} and {self.origin!r}")
        if self.origin == "timestamp" and (self.type != "timestamp" or self.zone or self.unit):
            raise ValueError(f"from = 'timestamp' needs the type timestamp without zone and unit, got {self.type!r}")
        if self.kind not in IN_TEXTS:
            raise ValueError(f"a key or header must be one of {', '.join(sorted(IN_TEXTS))}, got {self.type!r}")

    def default_value(self) -> Any:  # noqa: ANN401  # of the field's type
        """Return what the field is when it is null or missing; None for null."""
        if self.default is None:
            return None
        if self.kind == "json" and isinstance(self.default, str):
            return read_json(self, json.loads(self.default), self.default)
        return read_json(self, self.default, json.dumps(self.default))
