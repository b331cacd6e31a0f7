"""The shell program that prints the values of a host, one ``name=value`` per line.

An audit runs the program over SSH; hosts with the role ``selfaudit`` run the program themselves. The program prints
every package of a family and every toolkit, so that the stored output can be compared with a later stack.

The program takes 25 to 40 ms, mostly in dpkg and ldconfig: each command runs once for the values of all roles. A
command that may hang has a limit of ten seconds. The last line is ``complete=yes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.roles.auditvalue import (
    AuditValue,
    FileLine,
    FileThere,
    LibraryVersion,
    PackageOf,
    PackageVersion,
    ReadPlace,
    Snippet,
    SnippetLine,
    UnitProperty,
    VenvPython,
    VenvVersion,
    needs_root,
)
from hostwright.resources.packages.packages import named_like

COMPLETE = "complete"  #: name that marks the last line of complete output
END = sh("say %s yes\n", COMPLETE)


def user_program(values: Iterable[AuditValue], *more: ReadPlace) -> str:
    """Return the part of the shell program that runs without root. This part prints ``values``, and the further files
    and snippets in ``more``.
    """
    asked = tuple(values)
    places = _places(place for place in (*_all(asked), *more) if not needs_root(place))
    parts = (_packages(asked), _libraries(places), _units(places), *_venvs(places), *_others(places))
    return "".join((sh_file(__file__, "prelude.sh"), *parts, END))


def root_program(values: Iterable[AuditValue]) -> str:
    """Return the part of the shell program that runs as root, to print ``values``; empty if no value needs root."""
    places = _places(filter(needs_root, _all(values)))
    return "".join((sh_file(__file__, "prelude.sh"), *_others(places), END)) if places else ""


def package_patterns(values: Iterable[AuditValue]) -> tuple[str, ...]:
    """Return patterns for dpkg: the families of packages in ``values``, and single packages that no family contains."""
    places = [place for place in _all(values) if isinstance(place, PackageVersion | PackageOf)]
    groups = (place.names if isinstance(place, PackageOf) else place.families for place in places)
    families = tuple(sorted({name for group in groups for name in group}))
    names = (place.name for place in places if isinstance(place, PackageVersion))
    others = [name for name in names if not named_like(name, families)]
    return (*families, *dict.fromkeys(others))


def _all(values: Iterable[AuditValue]) -> Iterator[ReadPlace]:
    return (place for value in values for place in value.places)


def _places(places: Iterable[ReadPlace]) -> tuple[ReadPlace, ...]:
    """Return ``places`` without duplicates. Raises ``ValueError`` for different places with the same name."""
    lines: dict[str, ReadPlace] = {}
    for place in places:
        if lines.setdefault(place.line, place) != place:
            raise ValueError(f"two audit values have the same name {place.line!r}: {place} and {lines[place.line]}")
    return tuple(lines.values())


def _packages(values: tuple[AuditValue, ...]) -> str:
    patterns = package_patterns(values)
    if not patterns:
        return ""
    groups = dict.fromkeys(place for place in _all(values) if isinstance(place, PackageOf))
    return f"set -- {words(patterns)}\n" + sh_file(__file__, "packages.sh", any="\n".join(map(_any_of, groups)))


def _any_of(group: PackageOf) -> str:
    names = "|".join(_expression(name) for name in group.names)
    return f"s/^package ({names})=/{group.line}={chr(92) + '1 ' if group.named else ''}/p"


def _expression(pattern: str) -> str:
    return pattern.replace(".", "[.]").replace("+", "[+]").replace("*", "[^=]*")


def _libraries(places: Iterable[ReadPlace]) -> str:
    stems = dict.fromkeys(place.name.partition(".so.")[0] for place in places if isinstance(place, LibraryVersion))
    return sh_file(__file__, "libraries.sh", stems="|".join(map(_expression, stems))) if stems else ""


def _units(places: Iterable[ReadPlace]) -> str:
    wanted = [place for place in places if isinstance(place, UnitProperty)]
    if not wanted:
        return ""
    units = {place.unit: place.line.rpartition(" ")[0].removeprefix("unit ") for place in wanted}
    properties = ",".join(dict.fromkeys(place.name for place in wanted))
    return sh_file(__file__, "units.sh", properties=properties, units=tuple(units), labels=tuple(units.values()))


def _venvs(places: Iterable[ReadPlace]) -> Iterator[str]:
    packages: dict[str, list[str]] = {}
    for place in places:
        if isinstance(place, VenvPython | VenvVersion):
            packages.setdefault(place.venv, []).extend([place.name] if isinstance(place, VenvVersion) else [])
    for venv, names in packages.items():
        label = VenvPython(venv).line.removeprefix("python of ")
        yield f"set -- {words(tuple(names))}\n" + sh_file(__file__, "venv.sh", venv=venv, label=label)


def _others(places: Iterable[ReadPlace]) -> Iterator[str]:
    done: set[Snippet] = set()
    for place in places:
        if isinstance(place, FileLine):
            yield sh('line_of %s; say %s "$line"\n', place.path, place.line)
        elif isinstance(place, FileThere):
            yield sh("program %s %s\n" if place.executable else "there %s %s\n", place.line, place.path)
        elif isinstance(place, SnippetLine) and place.snippet not in done:
            done.add(place.snippet)
            yield sh("(scope=%s\n", f"{place.snippet.name} ") + place.snippet.text.strip("\n") + "\n)\n"
