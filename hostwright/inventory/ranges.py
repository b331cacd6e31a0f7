"""Expands patterns of host names: ``gpu[01:64]``, ``rack[a:f]n[1:8:2]``, ``gpu01:2222``, ``[2001:db8::1]:22``."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address

MAX_NAMES = 100_000  #: maximum number of host names to which one pattern expands
_RANGE = re.compile(r"\[([0-9]*|[A-Za-z]):([0-9]+|[A-Za-z])(?::([0-9]+))?\]")
_HOST = re.compile(r"\w[\w.@-]*")
_PORT = re.compile(r"(?P<name>[^:]*(?:\[[^\]]*\][^:]*)*):(?P<port>[0-9]{1,5})")
_BRACKETED = re.compile(r"\[(?P<name>[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\](?::(?P<port>[0-9]{1,5}))?")
_MAX_DIGITS = 12  #: maximum number of digits in a bound of a range


def expand(pattern: str) -> tuple[list[str], int | None]:
    """Return the host names to which ``pattern`` expands, and the port in ``pattern`` or ``None``.

    Raises ``ValueError`` for an invalid range, name or port.

    >>> expand("gpu[01:03]")
    (['gpu01', 'gpu02', 'gpu03'], None)
    >>> expand("[2001:db8::1]:2222")
    (['2001:db8::1'], 2222)
    """
    if _HOST.fullmatch(pattern) or is_ipv6(pattern):
        return [pattern], None
    outside = _BRACKETED.fullmatch(pattern) or _PORT.fullmatch(pattern)
    port = int(outside["port"]) if outside and outside["port"] else None
    stem = outside["name"] if outside else pattern
    parts = _RANGE.split(stem)
    texts, ranges = parts[::4], [parts[index : index + 3] for index in range(1, len(parts), 4)]
    choices: list[Sequence[str]] = []
    count = 1
    for bounds in ranges:
        choices.append(_choices(*bounds))
        count *= len(choices[-1])
        if count > MAX_NAMES:
            raise ValueError(f"{pattern!r} expands to {count} hosts; the limit is {MAX_NAMES}")
    names = ["".join(_braid(texts, chosen)) for chosen in itertools.product(*choices)]
    for name in names[:1]:
        check_host_name(name)
    return names, port


def is_ipv6(text: str) -> bool:
    """Return whether ``text`` is an IPv6 address without brackets."""
    try:
        return ":" in text and bool(IPv6Address(text))
    except AddressValueError:
        return False


def check_host_name(name: str) -> None:
    """Raise ``ValueError`` if ``name`` is not valid.

    A valid name is an IPv6 address, or consists of letters, digits, ``.``, ``_``, ``-`` and ``@``.
    """
    if _HOST.fullmatch(name) or is_ipv6(name):
        return
    hint = "; write ranges as gpu[01:64]" if "[" in name or "]" in name else ""
    hint = hint or ("; set the address with ansible_host" if ":" in name else "")
    raise ValueError(f"{name!r} cannot be a host's name; use only letters, digits, '.', '_' and '-'{hint}")


def _braid(texts: Sequence[str], chosen: Sequence[str]) -> list[str]:
    return [part for pair in itertools.zip_longest(texts, chosen, fillvalue="") for part in pair]


def _choices(first: str, last: str, step: str | None) -> Sequence[str]:
    for number in (first, last, step or ""):
        if len(number) > _MAX_DIGITS:
            raise ValueError(f"{number[:_MAX_DIGITS]}… has {len(number)} digits; the limit in a range is {_MAX_DIGITS}")
    stride, first = int(step) if step else 1, first or "0"
    if stride == 0:
        raise ValueError(f"[{first}:{last}:0] has the step 0; use 1 or more")
    if first.isdigit() != last.isdigit():
        raise ValueError(f"[{first}:{last}] has a number and a letter; use the same kind for both")
    if first.isdigit():
        chosen = _numbers(first, last, stride)
    else:
        letters = string.ascii_letters
        chosen = list(letters[letters.index(first) : letters.index(last) + 1 : stride])
    if not chosen:
        raise ValueError(f"[{first}:{last}] is empty; put the smaller bound first")
    return chosen


def _numbers(first: str, last: str, stride: int) -> list[str]:
    width = len(first) if first.startswith("0") and len(first) > 1 else 0
    if width and len(last) != width:
        raise ValueError(f"[{first}:{last}] has leading zeros; write both bounds with the same number of digits")
    numbers = range(int(first), int(last) + 1, stride)
    if len(numbers) > MAX_NAMES:
        raise ValueError(f"[{first}:{last}] expands to {len(numbers)} hosts; the limit is {MAX_NAMES}")
    return [str(number).zfill(width) for number in numbers]
