"""Defaults of options: ``HOSTWRIGHT_<OPTION>`` in the environment, else the site's file.

    # hostwright.toml, beside inventory/
    [site]
    hosts = "@gpu,!mgmt01"
    state = "/srv/hostwright"

    [options]
    max-fail = "10%"
    notify = "/usr/local/bin/tell-slack"

The command line overrides the environment, and the environment overrides the file. Options have the same names in all
three. Hosts can be given only on the command line. The shared file cannot contain confirmations (``--yes``,
``--force``).

``[site]`` applies to every call: which hosts may get a stack, and where all operators store their records. A mistake
ends the verb with file and line, before any host is contacted; help and completion still work.
"""

from __future__ import annotations

import os
import re
import tomllib
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
OF_SITE = ("hosts", "state")  #: keys below [site], each a text
#: options that cannot be set: HOSTWRIGHT_HOST is set for commands that Hostwright starts
TYPED = frozenset({"hosts", "host"})
ALIKE = 0.8  #: similarity to an option's variable above which a variable counts as a misspelling
MOST_PARTS = 64  #: maximum parts of a key with dots (our choice)
LARGEST = 64 * 1024  #: maximum characters of the file: 100 times the size of all options
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_LINE = re.compile(r" ?\(at line (\d+), column \d+\)$")
_KINDS = {bool: "true or false", int: "a whole number", str: "text", list: "a list of texts"}

#: options that may be set, by name
_KNOWN: Mapping[str, Option] = {
    name.replace("_", "-"): each for name, each in OPTIONS.items() if each.settable != "never"
}


Row = tuple[str, str, Any, str]  #: one entry of the site's file: table, name, value and place


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of an option, and its origin: a variable or ``file:line``."""

    value: Any
    origin: str


def in_file() -> Mapping[str, type]:
    """Return the options that the site's file may set, with the types of their values."""
    return {name: each.kind for name, each in _KNOWN.items() if each.settable == "everywhere"}


def current() -> Mapping[str, Setting]:
    """Return all settings, by option. Raises ``InputErrors`` with every mistake, each with its place."""
    mistakes = Mistakes()
    settings = readable(mistakes)
    mistakes.refuse()
    return settings


def readable(mistakes: Mistakes) -> Mapping[str, Setting]:
    """Return all valid settings. Each mistake is added to ``mistakes``, with its place."""
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
    """Return the valid settings, for the defaults in help texts.

    They are cached, because every verb needs them, and a search for a site visits all parent folders.
    """
    own = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    here = Path().stat()
    return _for_help((here.st_dev, here.st_ino, here.st_mtime_ns), tuple(sorted(own.items())))


@lru_cache(maxsize=1)
def _for_help(_place: tuple[int, ...], _environment: tuple[tuple[str, str], ...]) -> Mapping[str, Setting]:
    return readable(Mistakes())  # the called verb reports the mistakes


def of_site() -> Mapping[str, Setting]:
    """Return the settings below ``[site]``. Raises ``InputErrors``."""
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
    """Set the state directory from the site's file, unless the environment sets it. Child processes inherit it.

    Raises ``InputErrors``.
    """
    state = of_site().get("state")
    if state and not os.environ.get(STATE_VARIABLE):
        os.environ[STATE_VARIABLE] = str(Path(state.origin).parent / expanded(state.value))


def variable_of(option: str) -> str:
    """Return the environment variable of an option.

    >>> variable_of("max-fail")
    'HOSTWRIGHT_MAX_FAIL'
    """
    return PREFIX + option.upper().replace("-", "_")


def misspelt() -> Iterator[str]:
    """Yield a message for each environment variable that resembles an option's."""
    for name in sorted(name for name in os.environ if name.startswith(PREFIX)):
        option = name.removeprefix(PREFIX).lower().replace("_", "-")
        meant = nearest(option, _KNOWN, ALIKE) if option not in _KNOWN.keys() | TYPED else None
        if meant:
            yield f"{name} is not read; did you mean {variable_of(meant)}?"
    if os.environ.get(f"{PREFIX}HOSTS"):
        yield f"{PREFIX}HOSTS is not read; pass --hosts in each call"


def placed(error: InputError, settings: Mapping[str, Setting]) -> InputError:
    """Add the origin of a setting to an error about an option that is not on the command line."""
    if isinstance(error, InputErrors):
        return InputErrors([placed(each, settings) for each in error.errors])
    setting = settings.get((error.where or "").removeprefix("--"))
    if setting is None or not (error.where or "").startswith("--"):
        return error
    return InputError(str(error), setting.origin)


def _of_file() -> Iterator[Row]:
    """Return the entries of the site's file, with their places. Raises ``InputErrors``."""
    try:
        file = Site.find().root / FILE
        stamp = file.stat()
    except (InputError, OSError):
        return iter(())
    return iter(_read(file, (stamp.st_mtime_ns, stamp.st_size)))


@lru_cache(maxsize=4)  # each of fifty verbs needs its defaults
def _read(file: Path, _: tuple[int, int]) -> list[tuple[str, str, Any, str]]:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", str(file)) from error
    if len(text) > LARGEST:
        raise InputError(f"is longer than {LARGEST // 1024} KiB, the limit for settings", str(file))
    if line := _overlong_key(text):
        raise InputError(f"has a key with more than {MOST_PARTS} parts; expected one part", f"{file}:{line}")
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
        InputError(f"expected the table [{name}]", _at(file, text, (name,)))
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
    """Return the number of the first line that may have a key of too many parts; 0 if there is none.

    tomllib takes minutes for a key of 20,000 parts, because its time is quadratic.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if any(part.count(".") >= MOST_PARTS for part in re.split("[=,]", line)):
            return number
    return 0


def _not_toml(error: tomllib.TOMLDecodeError, text: str, file: Path) -> InputError:
    found = _LINE.search(str(error))
    line = int(found[1]) if found else text.count("\n") + 1
    why = _LINE.sub("", str(error)).replace(" (at end of document)", "")
    hint = "; put texts in quotes" if "value" in why else ""
    return InputError(f"is not valid TOML: {why[:1].lower()}{why[1:]}{hint}", f"{file}:{line}")


def _at(file: Path, text: str, way: tuple[str, ...]) -> str:
    """Return file and line of a key. Parses the file up to each line until the result contains the key."""
    lines, begins = text.splitlines(), 1
    for number in count(1):
        try:
            content: Any = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        for key in way:
            content = content.get(key) if isinstance(content, dict) else None  # TOML has no null
        if content is not None or number >= len(lines):
            return f"{file}:{begins}"
        begins = number + 1
    raise AssertionError("internal error: itertools.count() ended")


def _checked(name: str, value: Any, origin: str) -> Any:
    """Return a value of the file as the option's value. Raises ``InputError``."""
    if name in TYPED:
        raise InputError(
            f"{name}: cannot be set in this file; pass --{name} in each call (hosts below [{SITE}] limits "
            "which hosts get a stack)",
            origin,
        )
    if name in _KNOWN and _KNOWN[name].settable == "environment":
        raise InputError(f"{name}: cannot be set in this file; pass --{name} in each call", origin)
    if name not in _KNOWN:
        shown = suggestion(name, sorted(in_file()))
        raise InputError(f"{name[:40]}: is not an option that can be set; {shown}", origin)
    kind = _KNOWN[name].kind
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # such as canary = 1
    if kind is list and isinstance(value, str):
        return [value]
    if type(value) is not kind or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        raise InputError(f"{name}: found {_shown(value)}, expected {_KINDS[kind]}", origin)
    return value


def _in_site(name: str, value: Any, origin: str) -> Any:
    """Return a value with paths relative to the folder of the file; other values unchanged."""
    if not _KNOWN[name].is_path:
        return value
    if isinstance(value, list):
        return [_in_site(name, each, origin) for each in value]
    root = Path(origin).parent
    path = root / value
    if not path.exists():
        return value
    if path.is_relative_to(root) and not in_named_site(root) and (fault := fault_of(path)):
        raise InputError(f"{name}: {fault}, and Hostwright could run the file as a program", origin)
    return str(path)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)[:40]


def _parsed(kind: type, text: str, variable: str) -> Any:
    """Return a variable's text as the option's value. Raises ``InputError``."""
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
