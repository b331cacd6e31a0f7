"""What options are where nobody types them: ``HOSTWRIGHT_<OPTION>`` in the environment, else the site's file.

    # hostwright.toml, beside inventory/
    [site]
    hosts = "@gpu,!mgmt01"
    state = "/srv/hostwright"

    [options]
    max-fail = "10%"
    notify = "/usr/local/bin/tell-slack"

The command line wins over the environment, and the environment over the file. Options have the same names in all three.
Which hosts a call is for is always typed, and what is agreed to (``--yes``, ``--force``) stands in no file that others
share. What ``[site]`` says holds for every call: which hosts may get a stack, and where all operators keep their
records. A mistake ends the verb with its place, before any host is touched; help and completion work all the same.
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
OF_SITE = ("hosts", "state")  #: what stands below [site], each a text
TYPED = frozenset({"hosts", "host"})  #: commands that Hostwright starts find HOSTWRIGHT_HOST in their environment
ALIKE = 0.8  #: how similar a variable must be to an option's to count as a misspelling
MOST_PARTS = 64  #: our choice, of a key with dots: a line of prose has fewer
LARGEST = 64 * 1024  #: characters of the file: a hundred times what all options take
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_LINE = re.compile(r" ?\(at line (\d+), column \d+\)$")
_KINDS = {bool: "true or false", int: "a whole number", str: "text", list: "a list of texts"}

#: what may be set, by the option's name
_KNOWN: Mapping[str, Option] = {
    name.replace("_", "-"): each for name, each in OPTIONS.items() if each.settable != "never"
}


Row = tuple[str, str, Any, str]  #: of the site's file: table, name, value and place


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of an option, and the variable or ``file:line`` that it stands in."""

    value: Any
    origin: str


def in_file() -> Mapping[str, type]:
    """The options that the site's file may set, with the kind of their values."""
    return {name: each.kind for name, each in _KNOWN.items() if each.settable == "everywhere"}


def current() -> Mapping[str, Setting]:
    """What is set now, by option. Raises ``InputErrors`` with every mistake, each with its place."""
    mistakes = Mistakes()
    settings = readable(mistakes)
    mistakes.refuse()
    return settings


def readable(mistakes: Mistakes) -> Mapping[str, Setting]:
    """What is set now without a mistake; every mistake is added to ``mistakes``, with its place."""
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
    """The settings without a mistake, for the defaults in help texts.

    They are cached: every verb asks, and where there is no site, each search visits all folders below this one.
    """
    own = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    here = Path().stat()
    return _for_help((here.st_dev, here.st_ino, here.st_mtime_ns), tuple(sorted(own.items())))


@lru_cache(maxsize=1)
def _for_help(_place: tuple[int, ...], _environment: tuple[tuple[str, str], ...]) -> Mapping[str, Setting]:
    return readable(Mistakes())  # what is wrong with others, the verb that is called will say


def of_site() -> Mapping[str, Setting]:
    """What the site's file says below ``[site]``. Raises ``InputErrors``."""
    return _below_site(_of_file())


def _below_site(rows: Iterable[Row]) -> Mapping[str, Setting]:
    settings: dict[str, Setting] = {}
    mistakes = Mistakes()
    for table, name, value, origin in rows:
        if table != SITE:
            continue
        with mistakes:
            if name not in OF_SITE:
                raise InputError(f"{name[:40]}: is no setting of a site; {suggestion(name, OF_SITE)}", origin)
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"{name}: found {_shown(value)}, expected {_KINDS[str]}", origin)
            settings[name] = Setting(value, origin)
    mistakes.refuse()
    return settings


def use_state() -> None:
    """Keep records where the site's file says, unless the environment says it; programs that we start do so too.

    Raises ``InputErrors``.
    """
    state = of_site().get("state")
    if state and not os.environ.get(STATE_VARIABLE):
        os.environ[STATE_VARIABLE] = str(Path(state.origin).parent / expanded(state.value))


def variable_of(option: str) -> str:
    """The environment variable of an option.

    >>> variable_of("max-fail")
    'HOSTWRIGHT_MAX_FAIL'
    """
    return PREFIX + option.upper().replace("-", "_")


def misspelt() -> Iterator[str]:
    """A sentence for each environment variable that is almost an option's."""
    for name in sorted(name for name in os.environ if name.startswith(PREFIX)):
        option = name.removeprefix(PREFIX).lower().replace("_", "-")
        meant = nearest(option, _KNOWN, ALIKE) if option not in _KNOWN.keys() | TYPED else None
        if meant:
            yield f"{name} is not read; did you mean {variable_of(meant)}?"
    if os.environ.get(f"{PREFIX}HOSTS"):
        yield f"{PREFIX}HOSTS is not read: which hosts a call is for is always typed (--hosts)"


def placed(error: InputError, settings: Mapping[str, Setting]) -> InputError:
    """An error about an option that nobody typed, with the place where its value stands."""
    if isinstance(error, InputErrors):
        return InputErrors([placed(each, settings) for each in error.errors])
    setting = settings.get((error.where or "").removeprefix("--"))
    if setting is None or not (error.where or "").startswith("--"):
        return error
    return InputError(str(error), setting.origin)


def _of_file() -> Iterator[Row]:
    """Each table of the site's file with its names, their values and places. Raises ``InputErrors``."""
    try:
        file = Site.find().root / FILE
        stamp = file.stat()
    except (InputError, OSError):
        return iter(())
    return iter(_read(file, (stamp.st_mtime_ns, stamp.st_size)))


@lru_cache(maxsize=4)  # each of fifty verbs asks for its options' defaults
def _read(file: Path, _: tuple[int, int]) -> list[tuple[str, str, Any, str]]:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", str(file)) from error
    if len(text) > LARGEST:
        raise InputError(f"is longer than {LARGEST // 1024} KiB, which settings never are", str(file))
    if line := _overlong_key(text):
        raise InputError(f"has a key of more than {MOST_PARTS} parts, and keys here have one", f"{file}:{line}")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(error, text, file) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", str(file)) from error
    wrong = [
        InputError(f"there is no table [{name}]; the options stand below [{TABLE}]", _at(file, text, (name,)))
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
    """The number of the first line that may have a key of too many parts; 0 if there is none. tomllib takes minutes for
    one of 20,000 parts: the square of their number."""
    for number, line in enumerate(text.splitlines(), 1):
        if any(part.count(".") >= MOST_PARTS for part in re.split("[=,]", line)):
            return number
    return 0


def _not_toml(error: tomllib.TOMLDecodeError, text: str, file: Path) -> InputError:
    found = _LINE.search(str(error))
    line = int(found[1]) if found else text.count("\n") + 1
    why = _LINE.sub("", str(error)).replace(" (at end of document)", "")
    hint = "; texts stand in quotes" if "value" in why else ""
    return InputError(f"is not valid TOML: {why[:1].lower()}{why[1:]}{hint}", f"{file}:{line}")


def _at(file: Path, text: str, way: tuple[str, ...]) -> str:
    """Where a key stands. Of TOML's lines that make sense without the later ones, the first with the key ends it; it
    begins after the one before."""
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
    raise AssertionError("counting ended")


def _checked(name: str, value: Any, origin: str) -> Any:
    """A value of the file as the option's. Raises ``InputError``."""
    if name in TYPED:
        raise InputError(
            f"{name}: which hosts a call is for is always typed, and never set; which may get a stack at all: "
            f"[{SITE}] hosts",
            origin,
        )
    if name in _KNOWN and _KNOWN[name].settable == "environment":
        raise InputError(f"{name}: is agreed to in each call (--{name}), and not here for all of them", origin)
    if name not in _KNOWN:
        shown = suggestion(name, sorted(in_file()))
        raise InputError(f"{name[:40]}: is no option that can be set; {shown}", origin)
    kind = _KNOWN[name].kind
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # canary = 1
    if kind is list and isinstance(value, str):
        return [value]
    if type(value) is not kind or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        raise InputError(f"{name}: found {_shown(value)}, expected {_KINDS[kind]}", origin)
    return value


def _in_site(name: str, value: Any, origin: str) -> Any:
    """The value of the file with paths from its folder, whatever the working directory is; others are as they are."""
    if not _KNOWN[name].is_path:
        return value
    if isinstance(value, list):
        return [_in_site(name, each, origin) for each in value]
    root = Path(origin).parent
    path = root / value
    if not path.exists():
        return value
    if path.is_relative_to(root) and not in_named_site(root) and (fault := fault_of(path)):
        raise InputError(f"{name}: {fault}, and may be a program", origin)
    return str(path)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)[:40]


def _parsed(kind: type, text: str, variable: str) -> Any:
    """A variable's text as the option's value. Raises ``InputError``."""
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
