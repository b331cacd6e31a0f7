"""Runs ``ansible-inventory`` for sources that need a plugin of Ansible: clouds, ``constructed``, TOML.

One call reads all sources, because a plugin may use the contents of other files.
"""

from __future__ import annotations

import configparser
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import re2

from hostwright.common.errors import InputError
from hostwright.common.input.ownership import fault_of, in_named_site
from hostwright.common.input.yamlfile import Origin
from hostwright.common.untrusted import Pattern
from hostwright.common.userpaths import expanded, working_directory
from hostwright.inventory.draft import Draft, concealed, group_level
from hostwright.inventory.model import ALL, HOST_LEVEL, Value
from hostwright.inventory.reading.dynamic import Tell, ask

PROGRAM = "ansible-inventory"


def read_with_ansible(sources: Sequence[Path], plugins: Sequence[Path], draft: Draft, tell: Tell) -> None:
    """Run ``ansible-inventory`` for ``sources``, and add to ``draft`` the definitions that no other file has.

    ``plugins`` are the files that only Ansible can read. Raises ``InputError`` if the program is missing or fails.
    """
    named = ", ".join(map(str, plugins))
    program = shutil.which(PROGRAM)
    if program is None:
        raise InputError(
            f"is the configuration of an Ansible inventory plugin, and {PROGRAM} is not on this machine's PATH; "
            "install Ansible, or put an executable that answers --list beside the file",
            named,
        )
    given = [argument for source in sources for argument in ("-i", _absolute(source))]
    here = working_directory()  # An ansible.cfg in this directory may name plugins, which are code.
    folder = Path("/") if fault_of(here) and not in_named_site(here) else here
    answer = ask([program, *given, "--list", "--export"], named, tell, folder)
    draft.notes.append(f"{named}: read by {program}, whose groups and variables are added to those of the other files")
    hostvars = answer.pop("_meta", {}).get("hostvars", {})
    origin = Origin(PROGRAM)
    for name, body in answer.items():
        _group(name, body, origin, draft)
    for host, values in hostvars.items():
        known = _known(draft.hosts.get(host, []))
        draft.add_hosts(draft.group(ALL, origin), host, _new(values, known, HOST_LEVEL, origin), origin)


def _absolute(source: Path) -> str:
    return str(source.absolute() if source.exists() else source)


def configured(root: Path) -> tuple[Path, list[Path]] | None:
    """Return the path of the ``ansible.cfg`` for ``root``, and the inventories that this file names; ``None`` if it
    names none.
    """
    file, sections = _sections(root)
    defaults = sections.get("defaults", {})
    sources = [file.parent / expanded(part) for part in _parts(defaults.get("inventory", ""))]
    return (file, sources) if sources else None


def vault_password_files(root: Path) -> list[Path]:
    """Return the Ansible Vault password files that the ``ansible.cfg`` for ``root`` names, in order.

    ``vault_password_file`` comes first, then ``vault_identity_list``. Raises ``InputError`` if ``ansible.cfg`` is
    invalid.
    """
    file, sections = _sections(root)
    defaults = sections.get("defaults", {})
    identities = (part.rpartition("@")[2] for part in _parts(defaults.get("vault_identity_list", "")))
    named = [defaults.get("vault_password_file", "").strip(), *identities]
    return [file.parent / expanded(name) for name in named if name and not name.startswith("prompt")]


@dataclass(frozen=True, slots=True)
class Ignored:
    """Rules for files in an inventory directory that Ansible ignores, from ``ansible.cfg`` or the environment."""

    #: endings of ignored files; ``None`` for the default of Ansible
    endings: tuple[str, ...] | None = None
    patterns: tuple[Pattern, ...] = ()  #: patterns that match anywhere in the names of ignored files

    @classmethod
    def of(cls, root: Path) -> Ignored:
        """Read the rules from the ``ansible.cfg`` for ``root``. Raises ``InputError`` if a rule is invalid."""
        file, sections = _sections(root)

        def of_setting(name: str, variable: str) -> list[str] | None:
            given = os.environ.get(variable)
            # As in Ansible, the section [inventory] overrides the section [defaults].
            for section, key in (("inventory", name), ("defaults", f"inventory_{name}")):
                given = sections.get(section, {}).get(key) if given is None else given
            return None if given is None else [part.strip("'\"") for part in _parts(given)]

        endings = of_setting("ignore_extensions", "ANSIBLE_INVENTORY_IGNORE")
        named = of_setting("ignore_patterns", "ANSIBLE_INVENTORY_IGNORE_REGEX") or ()
        return cls(None if endings is None else tuple(endings), tuple(_pattern(text, file) for text in named))


def _pattern(text: str, file: Path) -> Pattern:
    try:
        return Pattern(text)
    except re2.error as error:
        raise InputError(
            f"found {text!r} in ignore_patterns, expected a regular expression without look-around", str(file)
        ) from error


def _sections(root: Path) -> tuple[Path, Mapping[str, Mapping[str, str]]]:
    """Return the path of the ``ansible.cfg`` for ``root``, and its sections. As in Ansible, the file is ignored if the
    directory is world-writable. Raises ``InputError`` if the file cannot be read.
    """
    named = os.environ.get("ANSIBLE_CONFIG", "")
    file = expanded(named) if named else root / "ansible.cfg"
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        if not named and root.is_dir() and root.stat().st_mode & stat.S_IWOTH:
            return file, {}
        parser.read(file, "utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {' '.join(str(error).split())}", str(file)) from error
    return file, {name: dict(section) for name, section in parser.items()}


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _group(name: str, body: Mapping[str, Any], origin: Origin, draft: Draft) -> None:
    group = draft.group(name, origin)
    for host in body.get("hosts", ()):
        draft.add_hosts(group, host, {}, origin)
    for child in body.get("children", ()):
        if name != ALL:  # The program lists every group without a parent as a child of `all`.
            draft.group(child, origin)
            group.children.setdefault(child, origin)
    values = _new(body.get("vars", {}), _known(group.layers), group_level(name), origin)
    if values:
        group.layers.append(values)


def _known(layers: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    return {name: value for layer in layers for name, value in layer.items()}


def _new(given: Mapping[str, Any], known: Mapping[str, Value], level: str, origin: Origin) -> dict[str, Value]:
    return {name: Value(concealed(name, value), origin, level) for name, value in given.items() if name not in known}
