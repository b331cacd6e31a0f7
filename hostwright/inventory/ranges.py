"""Host names as inventories write them: ``gpu[01:64]``, ``rack[a:f]n[1:8:2]``, ``gpu01:2222``."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

MAX_NAMES = 100_000  #: of one range; more is a typing mistake
_RANGE = re.compile(r"\[([0-9]+|[A-Za-z]):([0-9]+|[A-Za-z])(?::([0-9]+))?\]")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PORT = re.compile(r"(?P<name>.*[^:]):(?P<port>[0-9]{1,5})")


def expand(pattern: str) -> tuple[list[str], int | None]:
    """The host names of a pattern, and the port after it if there is one. Raises ``ValueError`` with a sentence.

    >>> expand("gpu[01:03]")
    (['gpu01', 'gpu02', 'gpu03'], None)
    """
    if _HOST.fullmatch(pattern):
        return [pattern], None
    outside = _PORT.fullmatch(pattern)
    port = int(outside["port"]) if outside else None
    stem = outside["name"] if outside else pattern
    parts = _RANGE.split(stem)
    texts, ranges = parts[::4], [parts[index : index + 3] for index in range(1, len(parts), 4)]
    choices = [_choices(*bounds) for bounds in ranges]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MAX_NAMES:
        raise ValueError(f"{pattern!r} stands for {count} hosts; the most is {MAX_NAMES}")
    names = ["".join(_braid(texts, chosen)) for chosen in itertools.product(*choices)]
    for name in names[:1]:
        check_host_name(name)
    return names, port


def check_host_name(name: str) -> None:
    """Raise ``ValueError`` unless the name consists of letters, digits, ``.``, ``_`` and ``-``."""
    if _HOST.fullmatch(name):
        return
    hint = "; ranges are written gpu[01:64]" if "[" in name or "]" in name else ""
    hint = hint or ("; give the address with ansible_host" if ":" in name else "")
    raise ValueError(f"{name!r} cannot be a host's name: letters, digits, '.', '_' and '-' only{hint}")


def _braid(texts: Sequence[str], chosen: Sequence[str]) -> list[str]:
    return [part for pair in itertools.zip_longest(texts, chosen, fillvalue="") for part in pair]


def _choices(first: str, last: str, step: str | None) -> list[str]:
    stride = int(step) if step else 1
    if stride == 0:
        raise ValueError(f"[{first}:{last}:0] never ends; the step is 1 or more")
    if first.isdigit() != last.isdigit():
        raise ValueError(f"[{first}:{last}] goes from a number to a letter")
    if first.isdigit():
        return _numbers(first, last, stride)
    letters = string.ascii_letters
    chosen = letters[letters.index(first) : letters.index(last) + 1 : stride]
    return list(_not_empty(chosen, first, last))


def _numbers(first: str, last: str, stride: int) -> list[str]:
    width = len(first) if first.startswith("0") else 0
    if width and len(last) != width:
        raise ValueError(f"[{first}:{last}]: with leading zeros both ends have the same number of digits")
    numbers = range(int(first), int(last) + 1, stride)
    if len(numbers) > MAX_NAMES:
        raise ValueError(f"[{first}:{last}] stands for {len(numbers)} hosts; the most is {MAX_NAMES}")
    return [str(number).zfill(width) for number in _not_empty(numbers, first, last)]


def _not_empty(chosen: Sequence[T], first: str, last: str) -> Sequence[T]:
    if not chosen:
        raise ValueError(f"[{first}:{last}] is empty: the first end comes after the last")
    return chosen
