"""Advisories about software: ends of life of version series, and the oldest version with the fixes of each bulletin.

A role's ``advisories.json`` contains advisories; ``invoke mirror --advisories`` adds advisories from newer bulletins.
Products have the same names as in ``Stack.versions``.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.stack.stackvalues import StackPart

FILE = "advisories.json"  #: name of the file with advisories in a role's folder and in the state folder

#: date as a year, month or day, as precise as in the source
When = Annotated[str, Field(pattern=r"^20[0-9]{2}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$")]
#: numbers of a version, either all numbers or only the first numbers
Numbers = Annotated[str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9}){0,7}$")]
# An epoch, which ends with a colon, may precede the numbers of a version.
_NUMBERS = re.compile(r"(?:[0-9]{1,4}:)?([0-9]{1,9}(?:\.[0-9]{1,9}){0,7})")


class End(StackPart):
    """The end of life of a version series, after which no fixes are published.

    ``end`` is a date, or ``None`` if the date is past but unknown.
    """

    series: Numbers
    end: When | None = None
    source: str
    kind: str = ""  #: kind of the series in the vendor's words, such as LTS
    #: phrase before the series, if not the product itself ends: "the maker's container images with"
    of: str = ""


class Newest(StackPart):
    """The newest version series of a product without published ends of life: only this series gets fixes.

    ``next`` is the date on which the next series is expected.
    """

    series: Numbers
    since: When
    next: When | None = None
    source: str


class Floor(StackPart):
    """The oldest version with the fixes of one bulletin, for one series; for all series if ``series`` is ``None``."""

    version: Numbers
    series: Numbers | None = None
    published: When
    bulletin: str
    cves: tuple[str, ...] = ()


class Product(StackPart):
    """Advisories for one product.

    ``packages`` are shell patterns for the names of the product's packages on a host. ``bulletins`` are the product's
    names in the vendor's bulletins.
    """

    packages: tuple[str, ...] = ()
    bulletins: tuple[str, ...] = ()
    ends: tuple[End, ...] = ()
    floors: tuple[Floor, ...] = ()
    newest: Newest | None = None


class Advisories(StackPart):
    """Ends of life and oldest versions with fixes (``floors``) of all products, as known on ``date``."""

    date: date
    products: Mapping[str, Product] = {}


NONE = Advisories(date=date.min)


@dataclass(frozen=True, slots=True)
class Aged:
    """A reason to replace one version of a product."""

    product: str
    version: str
    kind: Literal["ended", "below the floor", "superseded"]
    sentence: str
    source: str


def aged(advisories: Advisories, versions: Mapping[str, str], today: date) -> tuple[Aged, ...]:
    """Return the reasons to replace ``versions`` (product name → version) on the day ``today``.

    >>> row = Floor(version="580.159.03", series="580", published="2026-05", bulletin="5821")
    >>> known = Advisories(date=date(2026, 11, 28), products={"driver": Product(floors=(row,))})
    >>> [one.sentence for one in aged(known, {"driver": "580.95.05"}, date(2026, 11, 28))]
    ['driver 580.95.05 is below the floor of May 2026 (580.159.03)']
    """
    known = _known(advisories, versions)
    return tuple(one for name, version, product in known for one in _against(name, version, product, today))


def _known(advisories: Advisories, versions: Mapping[str, str]) -> Iterator[tuple[str, str, Product]]:
    for named, version in versions.items():
        name = named.partition(" ")[0]
        if product := advisories.products.get(name):
            yield name, version, product


def _against(name: str, version: str, product: Product, today: date) -> Iterator[Aged]:
    own = numbers(version)
    if not own:
        return
    end, newest = series_of(product, version), product.newest
    if end and _is_over(end, today):
        when, ended = f" in {words(end.end)}" if end.end else "", f"{end.of} {end.series}".strip()
        yield Aged(name, version, "ended", f"{name} {version}: support for {ended} ended{when}", end.source)
    elif not end and newest and own < numbers(newest.series):
        since = f"{name} {version}: {newest.series} is the newest series since {words(newest.since)}"
        yield Aged(name, version, "superseded", f"{since}, and older ones have no end that is published", newest.source)
    broken = [floor for floor in product.floors if _of_series(floor.series, own) and own < numbers(floor.version)]
    if last := max(broken, key=lambda floor: (floor.published, numbers(floor.version)), default=None):
        sentence = f"{name} {version} is below the floor of {words(last.published)} ({last.version})"
        yield Aged(name, version, "below the floor", sentence, last.bulletin)


def series_of(product: Product, version: str) -> End | None:
    """Return the series of ``version``, the narrowest if several match; ``None`` if no series matches."""
    fitting = [end for end in product.ends if _of_series(end.series, numbers(version))]
    return max(fitting, key=lambda end: len(numbers(end.series)), default=None)


def _of_series(series: str | None, version: tuple[int, ...]) -> bool:
    return series is None or version[: len(numbers(series))] == numbers(series)


@cache
def numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version ``text``, without an epoch; empty without leading numbers."""
    match = _NUMBERS.match(text)
    return tuple(map(int, match[1].split("."))) if match else ()


def _is_over(end: End, today: date) -> bool:
    return end.end is None or last_day(end.end) < today


def last_day(when: str) -> date:
    """Return the last day of the year or month ``when``; a day is returned unchanged.

    >>> last_day("2026-02").isoformat()
    '2026-02-28'
    """
    year, month, day = (*map(int, when.split("-")), 0, 0)[:3]
    month = month or 12
    return date(year, month, day or calendar.monthrange(year, month)[1])


def words(when: str) -> str:
    """Return ``when`` for messages: ``May 2026`` for a month or day, ``2025`` for a year."""
    year, _, rest = when.partition("-")
    return f"{calendar.month_name[int(rest[:2])]} {year}" if rest else year


def lifetimes(advisories: Advisories, versions: Mapping[str, str], today: date) -> tuple[str, ...]:
    """Return a text for each version that still gets fixes, such as "driver 595 until March 2027"."""
    known = _known(advisories, versions)
    return tuple(line for name, version, product in known for line in _lives(name, version, product, today))


def _lives(name: str, version: str, product: Product, today: date) -> Iterator[str]:
    end, newest = series_of(product, version), product.newest
    if end and end.end and not _is_over(end, today):
        yield f"{name} {end.series}{f' ({end.kind})' if end.kind else ''} until {words(end.end)}"
        return
    following = newest.next if newest and not end and _of_series(newest.series, numbers(version)) else None
    if newest and following and today <= last_day(following):
        yield f"{name} {newest.series} until its next series, due in {words(following)}"


def combined(parts: Iterable[Advisories]) -> Advisories:
    """Merge advisories into one object, with the latest of their dates."""
    day, products = date.min, dict[str, Product]()
    for part in parts:
        day = max(day, part.date)
        for name, more in part.products.items():
            products[name] = _joined(products[name], more) if name in products else more
    return Advisories(date=day, products=products)


def _joined(one: Product, other: Product) -> Product:
    return Product(
        packages=tuple(dict.fromkeys((*one.packages, *other.packages))),
        bulletins=tuple(dict.fromkeys((*one.bulletins, *other.bulletins))),
        ends=tuple(dict.fromkeys((*one.ends, *other.ends))),
        floors=tuple(dict.fromkeys((*one.floors, *other.floors))),
        newest=max(filter(None, (one.newest, other.newest)), key=lambda newest: newest.since, default=None),
    )


def read_advisories(file: Path) -> Advisories:
    """Read the advisories in ``file``; ``NONE`` if the file is missing. Raises ``InputError`` for an unusable file."""
    try:
        return adapter(Advisories).validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return NONE
    except (OSError, ValidationError) as error:
        raise InputError(
            f"the security advisories cannot be read: {error}; correct or remove the file", str(file)
        ) from error


def advisories_text(advisories: Advisories) -> bytes:
    """Return ``advisories`` as the content of a file ``advisories.json``."""
    return adapter(Advisories).dump_json(advisories, indent=1, exclude_defaults=True) + b"\n"


def day_of(now: datetime | None) -> date:
    """Return the date of ``now``, by default today's date."""
    return (now or datetime.now().astimezone()).date()
