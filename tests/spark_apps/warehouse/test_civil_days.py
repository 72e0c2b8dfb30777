"""The kernels' calendar equals Python's, and numpy's beyond the years that Python supports."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from spark_apps.warehouse.civil_days import civil_date, first_day

EPOCH = date(1970, 1, 1)


def test_each_day_of_five_centuries_has_pythons_date() -> None:
    """Each day of five centuries, before 1970 too, has the date that Python computes."""
    for number in range((date(1599, 1, 1) - EPOCH).days, (date(2101, 1, 1) - EPOCH).days):
        day = EPOCH + timedelta(days=number)
        assert civil_date(number) == (day.year, day.month, day.day)


def test_each_month_begins_where_pythons_does() -> None:
    """Each month of all supported years begins on Python's day; month 13 is the next year's first."""
    for year in range(1000, 9999):
        for month in range(1, 13):
            assert first_day(year, month) == (date(year, month, 1) - EPOCH).days
        assert first_day(year, 13) == first_day(year + 1, 1)


@pytest.mark.parametrize("day", [-(2**63) // 86_400_000_000, -1_000_000, 10_000_000, 2**63 // 86_400_000_000])
def test_days_that_python_has_no_date_for_have_numpys(day: int) -> None:
    """Days at both ends of 64-bit microseconds have numpy's date, because the server must see the year to refuse it."""
    year, month, of_month = civil_date(day)
    assert f"{year:04d}-{month:02d}-{of_month:02d}" == str(np.datetime64(day, "D"))
