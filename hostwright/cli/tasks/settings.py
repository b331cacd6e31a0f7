"""Reads settings: defaults for options from ``HOSTWRIGHT_<OPTION>`` in the environment, or else from a site's file.

    # hostwright.toml, beside inventory/
    [site]
    hosts = "@gpu,!mgmt01"
    state = "/srv/hostwright"

    [options]
    max-fail = "10%"
    notify = "/usr/local/bin/tell-slack"

The command line overrides the environment, which overrides the file. Options have the same names in all three. Hosts
can be given only on the command line. The file cannot contain confirmations (``--yes``, ``--force``), because all
operators share it.

``[site]`` applies to every call: it defines which hosts may get a stack, and where records are stored. A mistake in the
file ends a verb before any host is contacted, but not help and completion.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from hostwright.common.errors import InputError, InputErrors, Mistakes
from hostwright.common.input.nearest import nearest, suggestion
from hostwright.common.input.ownership import fault_of, in_named_site
from hostwright.common.places import SITE_FILE, STATE_VARIABLE
from hostwright.common.request import OPTIONS, Option
from hostwright.common.userpaths import expanded
from hostwright.plan.roles.site import Site

FILE, TABLE, SITE, PREFIX = SITE_FILE, "options", "site", "HOSTWRIGHT_"
OF_SITE = ("hosts", "state")  #: keys of the table [site] that are not options. Both have text values.
#: options that only a call can set. Hostwright itself sets HOSTWRIGHT_HOST.
TYPED = frozenset({"hosts", "host"})
ALIKE = 0.8  #: minimum similarity, from 0 to 1, for reporting an environment variable as a misspelt option
MOST_PARTS = 64  #: maximum number of parts of a dotted key in the site's file (our choice)
LARGEST = 64 * 1024  #: maximum number of characters in the site's file, 100 times a file with all options
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_LINE = re.compile(r" ?\(at line (\d+), column \d+\)$")
_KINDS = {bool: "true or false", int: "a whole number", str: "text", list: "a list of texts"}

#: option's name as typed → option, for every option that a file or variable can set
_KNOWN: Mapping[str, Option] = {
    name.replace("_", "-"): each for name, each in OPTIONS.items() if each.settable != "never"
}


Row = tuple[str, str, Any, str]  #: setting as table, name, value and ``FILE:LINE``


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's value and origin: an environment variable or ``file:line``."""

    value: Any
    origin: str


def in_file() -> Mapping[str, type]:
    """Return the options that the site's file may set: option → type of the value."""
    return {name: each.kind for name, each in _KNOWN.items() if each.settable == "everywhere"}


def current() -> Mapping[str, Setting]:
    """Return option → setting. Raises ``InputErrors`` with the origin of every mistake."""
    mistakes = Mistakes()
    settings = readable(mistakes)
    mistakes.refuse()
    return settings


def readable(mistakes: Mistakes) -> Mapping[str, Setting]:
    """Return option → setting, for all valid settings. Adds each mistake, with its origin, to ``mistakes``."""
    settings: dict[str, Setting] = {}
    rows: list[Row] = []
    with mistakes:
        rows += _of_file()
    for table, name, value, origin in rows:
        if table != TABLE:
            continue
        with mistakes:
            settings[name] = Setting(_in_site(name, _checked(name, value, origin), origin), origin)
    with mistakes:
        _below_site(rows)
    for name, option in _KNOWN.items():
        variable = variable_of(name)
        if text := os.environ.get(variable, ""):
            with mistakes:
                settings[name] = Setting(_parsed(option.kind, text, variable), variable)
    return settings


def for_help() -> Mapping[str, Setting]:
    """Return option → setting, for the defaults in help texts. Invalid settings are omitted."""
    own = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    here = Path().stat()
    return _for_help((here.st_dev, here.st_ino, here.st_mtime_ns), tuple(sorted(own.items())))


@lru_cache(maxsize=1)
def _for_help(_place: tuple[int, ...], _environment: tuple[tuple[str, str], ...]) -> Mapping[str, Setting]:
    return readable(Mistakes())  # a help text ignores invalid settings, because the called verb reports each mistake


def of_site() -> Mapping[str, Setting]:
    """Return key → setting for the table ``[site]`` of the site's file. Raises ``InputErrors`` for invalid settings."""
    return _below_site(_of_file())


def _below_site(rows: Iterable[Row]) -> Mapping[str, Setting]:
    settings: dict[str, Setting] = {}
    mistakes = Mistakes()
    for table, name, value, origin in rows:
        if table != SITE:
            continue
        with mistakes:
            if name not in OF_SITE:
                raise InputError(f"{name[:40]}: is not a setting of a site; {suggestion(name, OF_SITE)}", origin)
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"{name}: found {_shown(value)}, expected {_KINDS[str]}", origin)
            settings[name] = Setting(value, origin)
    mistakes.refuse()
    return settings


def use_state() -> None:
    """Set the state directory to the one in the site's file, unless the environment sets one. Child processes inherit
    the setting.

    Raises ``InputErrors`` if the site's file is invalid.
    """
    state = of_site().get("state")
    if state and not os.environ.get(STATE_VARIABLE):
        os.environ[STATE_VARIABLE] = str(Path(state.origin).parent / expanded(state.value))


def variable_of(option: str) -> str:
    """Return the environment variable that sets ``option``.

    >>> variable_of("max-fail")
    'HOSTWRIGHT_MAX_FAIL'
    """
    return PREFIX + option.upper().replace("-", "_")


def misspelt() -> Iterator[str]:
    """Yield a message for each environment variable that is probably misspelt, since no option has this variable."""
    for name in sorted(name for name in os.environ if name.startswith(PREFIX)):
        option = name.removeprefix(PREFIX).lower().replace("_", "-")
        meant = nearest(option, _KNOWN, ALIKE) if option not in _KNOWN.keys() | TYPED else None
        if meant:
            yield f"{name} is not read; did you mean {variable_of(meant)}?"
    if os.environ.get(f"{PREFIX}HOSTS"):
        yield f"{PREFIX}HOSTS is not read; pass --hosts in each call"


def placed(error: InputError, settings: Mapping[str, Setting]) -> InputError:
    """Return ``error`` about an option with the origin of the option's setting, if ``settings`` set the option."""
    if isinstance(error, InputErrors):
        return InputErrors([placed(each, settings) for each in error.errors])
    setting = settings.get((error.where or "").removeprefix("--"))
    if setting is None or not (error.where or "").startswith("--"):
        return error
    return InputError(str(error), setting.origin)


def _of_file() -> Iterator[Row]:
    try:
        file = Site.find().root / FILE
        stamp = file.stat()
    except (InputError, OSError):
        return iter(())
    return iter(_read(file, (stamp.st_mtime_ns, stamp.st_size)))


@lru_cache(maxsize=4)  # some fifty verbs read the settings for the defaults in help texts
def _read(file: Path, _: tuple[int, int]) -> list[tuple[str, str, Any, str]]:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", str(file)) from error
    if len(text) > LARGEST:
        raise InputError(f"is longer than {LARGEST // 1024} KiB, the limit for settings", str(file))
    if line := _overlong_key(text):
        raise InputError(
            f"has a key with more than {MOST_PARTS} names joined by dots; write a single name before =",
            f"{file}:{line}",
        )
    import tomllib  # the import takes 3 ms, and most calls have no settings

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(error, text, file) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", str(file)) from error
    wrong = [
        InputError(f"the table [{name}] is unknown; write options below [{TABLE}]", _at(file, text, (name,)))
        for name in content
        if name not in (TABLE, SITE)
    ]
    tables = {name: content.get(name, {}) for name in (SITE, TABLE)}
    wrong += [
        InputError(f"{name} is not a table; write its keys on the lines below [{name}]", _at(file, text, (name,)))
        for name, table in tables.items()
        if not isinstance(table, dict)
    ]
    if wrong:
        raise InputErrors(wrong)
    return [
        (table, name, value, _at(file, text, (table, name)))
        for table, values in tables.items()
        for name, value in values.items()
    ]


def _overlong_key(text: str) -> int:
    """Return the number of the first line whose key may have too many parts; 0 without such a line. tomllib needs
    quadratic time for such a key: minutes for 20,000 parts.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if any(part.count(".") >= MOST_PARTS for part in re.split("[=,]", line)):
            return number
    return 0


def _not_toml(error: ValueError, text: str, file: Path) -> InputError:
    found = _LINE.search(str(error))
    line = int(found[1]) if found else text.count("\n") + 1
    why = _LINE.sub("", str(error)).replace(" (at end of document)", "")
    hint = "; put texts in quotes" if "value" in why else ""
    return InputError(f"is not valid TOML: {why[:1].lower()}{why[1:]}{hint}", f"{file}:{line}")


def _at(file: Path, text: str, way: tuple[str, ...]) -> str:
    import tomllib

    lines, begins = text.splitlines(), 1
    for number in count(1):
        try:
            content: Any = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        for key in way:
            # `get` returns None only for a missing key, because TOML has no null
            content = content.get(key) if isinstance(content, dict) else None
        if content is not None or number >= len(lines):
            return f"{file}:{begins}"
        begins = number + 1
    raise AssertionError("internal error: the loop ended without a result")


def _checked(name: str, value: Any, origin: str) -> Any:
    """Convert ``value`` from the site's file to the type of the option ``name``. Raises ``InputError``, with
    ``origin``, if the value is invalid.
    """
    if name in TYPED:
        raise InputError(
            f"{name}: cannot be set in this file; pass --{name} in each call. To limit the hosts of the site, set "
            f"hosts below [{SITE}]",
            origin,
        )
    if name in _KNOWN and _KNOWN[name].settable == "environment":
        raise InputError(f"{name}: cannot be set in this file; pass --{name} in each call", origin)
    if name not in _KNOWN:
        shown = suggestion(name, sorted(in_file()))
        raise InputError(f"{name[:40]}: is not an option that can be set; {shown}", origin)
    kind = _KNOWN[name].kind
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # TOML reads `canary = 1` as a number, although the option takes a text
    if kind is list and isinstance(value, str):
        return [value]
    if type(value) is not kind or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        raise InputError(f"{name}: found {_shown(value)}, expected {_KINDS[kind]}", origin)
    return value


def _in_site(name: str, value: Any, origin: str) -> Any:
    """Make ``value`` absolute if it is an existing path relative to the site's file. Raises ``InputError`` for a path
    in the site that other users can write.
    """
    if not _KNOWN[name].is_path:
        return value
    if isinstance(value, list):
        return [_in_site(name, each, origin) for each in value]
    root = Path(origin).parent
    path = root / value
    if not path.exists():
        return value
    if path.is_relative_to(root) and not in_named_site(root) and (fault := fault_of(path)):
        raise InputError(f"{name}: Hostwright could run a file that other users may be able to change: {fault}", origin)
    return str(path)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)[:40]


def _parsed(kind: type, text: str, variable: str) -> Any:
    if kind is list:
        return [line for line in text.splitlines() if line]
    if kind is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise InputError(f"found {text[:40]!r}, expected 1 or 0", variable)
        return text.lower() in _TRUE
    if kind is int:
        if not re.fullmatch(r"\d{1,9}", text):
            raise InputError(f"found {text[:40]!r}, expected {_KINDS[int]}", variable)
        return int(text)
    return text
