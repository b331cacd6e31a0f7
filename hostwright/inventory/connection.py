"""Reads Ansible's connection variables, which define how to connect to a host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.passwordcommand import SUFFIX, PrintedSecret
from hostwright.common.input.unquoted import UnquotedFloat, UnquotedInt
from hostwright.common.input.validation import describe
from hostwright.common.input.yamlfile import Vaulted
from hostwright.common.secret import Secret
from hostwright.common.text import short
from hostwright.inventory.model import COMMAND_LINE, HOST_LEVEL, Value
from hostwright.inventory.templates import CannotRender, World, render

_JUMP = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9._@:\[\]%-]*(,[A-Za-z0-9\[][A-Za-z0-9._@:\[\]%-]*)*")
_PROGRAM = re.compile(r"(/[A-Za-z0-9._+-]{1,100}){1,20}")
_TRUE, _FALSE = {"true", "yes", "on", "1", "y", "t"}, {"false", "no", "off", "0", "n", "f", ""}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_PORT = 65535

#: names of ssh options that are ignored. Hostwright manages the ssh connections itself.
_IGNORED = {
    "addkeystoagent", "batchmode", "compression", "connectionattempts", "controlmaster", "controlpath",
    "controlpersist", "forwardagent", "gssapiauthentication", "identitiesonly", "loglevel",
    "passwordauthentication", "preferredauthentications", "pubkeyauthentication", "requesttty", "serveralivecountmax",
    "serveraliveinterval", "tcpkeepalive", "updatehostkeys", "visualhostkey",
}  # fmt: skip
#: lowercase name → name in ssh_config. Of these options, Hostwright accepts only the default value.
_IN_SSH_CONFIG = {"checkhostip": "CheckHostIP", "hashknownhosts": "HashKnownHosts"}
#: value of ``host_keys`` for each value of ssh's StrictHostKeyChecking
_CHECKING: Mapping[str, str] = {
    "yes": "strict", "true": "strict", "accept-new": "accept-new", "ask": "", "no": "", "off": "", "false": "",
}  # fmt: skip
_FLAGS = {"-A", "-a", "-C", "-q", "-T", "-t", "-tt", "-x", "-4", "-v", "-vv", "-vvv"}


class _Bad(Exception):
    """A message about an invalid value of a variable, to which the caller adds file and line."""


class Connection:
    """Converts the connection variables of one host to fields of ``Host``, and collects mistakes and notes."""

    def __init__(self, name: str, variables: Mapping[str, Value], world: World, groups: tuple[str, ...]):
        self._name = name
        self._vars = variables
        self._world = world
        self._groups = groups
        self.mistakes: list[InputError] = []
        self.notes: list[str] = []
        self._unread: dict[str, str] = {}  #: notes, by variable, about passwords that only Ansible can read

    def fields(self) -> dict[str, Any]:
        """Return name → value of the fields of ``Host`` that the variables set.

        Variables such as ``ansible_port`` override the same settings in options for ssh.
        """
        fields: dict[str, Any] = {}
        present = self._vars.keys() & VARIABLES
        if "@" in self._name:  # As for ssh, a name may have the form USER@HOST.
            fields["user"], _, fields["address"] = self._name.rpartition("@")
        if "ansible_connection" in present:
            fields["connection"] = self._read("ansible_connection", _way) or "ssh"
        here = fields.get("connection") == "local"
        levels: dict[str, int] = {}
        for name in _SSH_ARGUMENTS:
            if name in present and not here:
                fields |= self._read(name, self._ssh_arguments) or {}
        for name, (field, read) in _READERS.items():
            if name in present and not (here and field in _OF_SSH):
                value = self._password(name, field) if read is _password else self._read(name, read)
                if read is _command and isinstance(value, str):
                    value = self._printed(name, value)
                if isinstance(value, Secret):  # A secret of the host overrides a secret of a group.
                    level = _LEVELS.get(self._vars[name].level, 0)
                    if level < levels.get(field, 0):
                        continue
                    levels[field] = level
                if value is not None:
                    fields[field] = value
        self.notes += [note for field, note in self._unread.items() if field not in fields]
        for name in _DEMANDS.keys() & present:
            self._read(name, _DEMANDS[name])
        return fields

    def _read(self, name: str, read: Callable[[Any], Any]) -> Any:
        value = self._vars[name]
        if value.value is None:
            return None
        try:
            return read(value.value if read is _command else self._filled(value.value))
        except _Bad as error:
            sentence = (
                "has an invalid value, which is not shown because it is secret"
                if isinstance(value.value, Secret)
                else error
            )
            self.mistakes.append(InputError(f"{name}: {sentence}", value.origin.exact))
            return None

    def _printed(self, name: str, command: str) -> Secret | None:
        base = name.removesuffix(SUFFIX)
        if base in self._vars and self._vars[base].value is not None:
            sentence = f"{name}: is set together with {base}; set one of them to null"
            self.mistakes.append(InputError(sentence, self._vars[name].origin.exact))
            return None
        return PrintedSecret(command, self._name, name)

    def _password(self, name: str, field: str) -> Secret | None:
        """Return the password in the variable ``name``. If only Ansible can read the variable, return ``None``, and ask
        the operator in a note to enter the password at a prompt.
        """
        value = self._vars[name]
        if value.value is None:
            return None
        try:
            return _password(self._filled(value.value))
        except _Bad:
            note = f"{value.origin}: only Ansible can read {name}; enter the password at the prompt when it is needed"
            self._unread.setdefault(field, note)
            return None

    def _filled(self, value: Any) -> Any:
        if isinstance(value, Vaulted):
            raise _Bad(value.sentence)
        if isinstance(value, (UnquotedInt, UnquotedFloat)):
            raise _Bad(f"found {short(value.text)}, which YAML reads as {value}; put it in quotes")
        if isinstance(value, Secret):
            value = value.reveal()
        if not isinstance(value, str) or ("{{" not in value and "{%" not in value):
            return value
        try:
            return render(value, self._name, self._world, self._vars, self._groups)
        except CannotRender as error:
            raise _Bad(str(error)) from error

    def _ssh_arguments(self, text: Any) -> dict[str, Any]:
        try:
            words = shlex.split(_text(text))
        except ValueError as error:
            raise _Bad(f"{error}; quote it as a shell would".lower()) from error
        fields: dict[str, Any] = {}
        for option, value in _options(words):
            self._option(option.lower(), value, fields)
        return fields

    def _option(self, option: str, value: str, fields: dict[str, Any]) -> None:
        plain = {"user": ("user", _text), "port": ("port", _port), "identityfile": ("key_file", _text)}
        plain |= {"connecttimeout": ("connect_timeout", _seconds)}
        if option in plain:
            name, read = plain[option]
            fields[name] = read(value)
        elif option == "proxyjump":
            fields["proxy_jump"] = None if value.lower() == "none" else _jump(value)
        elif option == "proxycommand":
            fields["proxy_jump"] = None if value.lower() == "none" else _jump_of_command(value)
        elif option == "userknownhostsfile" and value != "/dev/null":
            fields["known_hosts"] = _one_file(value)
        elif option in _IN_SSH_CONFIG:
            if value.lower() not in ("no", "false"):
                raise _Bad(f"{_IN_SSH_CONFIG[option]} {value} is not supported here; put it into ~/.ssh/config")
        elif option in ("stricthostkeychecking", "userknownhostsfile"):
            self._host_keys(option, value.lower(), fields)
        elif option not in _IGNORED:
            raise _Bad(f"the ssh option {option!r} is not supported here; put it into ~/.ssh/config")

    def _host_keys(self, option: str, value: str, fields: dict[str, Any]) -> None:
        if option == "stricthostkeychecking" and value not in _CHECKING:
            raise _Bad(f"StrictHostKeyChecking: found {describe(value)}, expected one of {', '.join(_CHECKING)}")
        if option == "stricthostkeychecking" and _CHECKING[value]:
            fields["host_keys"] = _CHECKING[value]
        elif option == "userknownhostsfile" or value in ("no", "off", "false"):
            self.notes.append(
                "host keys are always checked, despite ansible_ssh_common_args; to accept the keys of new hosts, set "
                "StrictHostKeyChecking=accept-new"
            )


def _options(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    names = {"-J": "ProxyJump", "-p": "Port", "-i": "IdentityFile", "-l": "User"}
    rest = iter(words)
    for word in rest:
        flag, attached = word[:2], word[2:]
        if word in _FLAGS:
            continue
        if flag not in ("-o", *names):
            raise _Bad(f"{word!r} is not supported here; put it into ~/.ssh/config")
        value = attached or next(rest, "")
        if flag == "-o":
            name, _, setting = value.replace("=", " ", 1).strip().partition(" ")
            yield name, setting.strip()
        else:
            yield names[flag], value


def _one_file(value: str) -> str:
    if len(value.split()) != 1 or value.lower() == "none":
        raise _Bad(f"UserKnownHostsFile: found {describe(value)}, expected one file; put several into ~/.ssh/config")
    return value


def _jump(value: str) -> str:
    if not _JUMP.fullmatch(value):
        raise _Bad(f"found {describe(value)}, expected a jump host as [user@]host[:port]")
    return value


def _jump_of_command(command: str) -> str:
    """Convert ``ssh -W %h:%p [-q] [-p PORT] [-l USER] [user@]bastion`` to a jump host in OpenSSH's form."""
    words = [word for word in shlex.split(command) if word not in _FLAGS]
    user = port = ""
    target: list[str] = []
    forwards, rest = False, iter(words[1:])
    for word in rest:
        if word in ("-W", "-p", "-l"):
            value = next(rest, "")
            forwards = forwards or (word == "-W" and value == "%h:%p")
            user, port = (value if word == "-l" else user), (value if word == "-p" else port)
        elif word == "-W%h:%p":
            forwards = True
        else:
            target.append(word)
    if words[:1] not in (["ssh"], ["/usr/bin/ssh"]) or not forwards or len(target) != 1 or target[0].startswith("-"):
        raise _Bad(
            f"found the ProxyCommand {describe(command)}, expected `ssh -W %h:%p [-p PORT] [user@]HOST`; "
            "put other commands into ~/.ssh/config"
        )
    return _jump((f"{user}@" if user and "@" not in target[0] else "") + target[0] + (f":{port}" if port else ""))


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _Bad(f"found {describe(value)}, expected text")
    text = str(value)
    if _CONTROL.search(text):
        raise _Bad(f"found {describe(value)}, which contains a line break or another control character")
    return text


def _name(value: Any) -> str:
    """Check and return ``value``, an address or a login name. A blank at the beginning or end is an error."""
    text = _text(value)
    if text != text.strip():
        raise _Bad(f"found {describe(value)}, which begins or ends with a blank")
    return text


def _port(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or not 0 < int(text) <= _MAX_PORT:
        raise _Bad(f"found {describe(value)}, expected a port from 1 to {_MAX_PORT}")
    return int(text)


def _seconds(value: Any) -> float:
    try:
        seconds = float(_text(value))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise _Bad(f"found {describe(value)}, expected a number of seconds")
    return seconds


def _bool(value: Any) -> bool:
    text = str(value).lower()
    if text not in _TRUE | _FALSE:
        raise _Bad(f"found {describe(value)}, expected true or false")
    return text in _TRUE


def _password(value: Any) -> Secret:
    return Secret(_text(value))


def _command(value: Any) -> str:
    if isinstance(value, Vaulted):
        raise _Bad(value.sentence)
    text = value.reveal() if isinstance(value, Secret) else value
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise _Bad(f"found {describe(value)}, expected a command for /bin/sh that prints the password")
    # A host's name may come from a cloud's API, and must not be evaluated as a template.
    if "{{" in text or "{%" in text:
        raise _Bad(
            'the command contains a template, which is not rendered here; use "$HOSTWRIGHT_HOST" for the host\'s name'
        )
    return text


def _way(value: Any) -> str:
    plugin = value
    for collection in ("ansible.builtin.", "ansible.legacy."):
        plugin = str(plugin).removeprefix(collection)
    if plugin in ("ssh", "paramiko", "paramiko_ssh", "smart"):
        return "ssh"
    if plugin == "local":
        return "local"
    raise _Bad(
        f"found {describe(value)}, expected 'ssh', or 'local' for this machine; to skip the host, add !NAME to --hosts"
    )


def _root(value: Any) -> str:
    if value != "root":
        raise _Bad(f"found {describe(value)}, expected root, since only root can install drivers and packages")
    return "root"


def _sudo(value: Any) -> str:
    if value != "sudo":
        raise _Bad(f"found {describe(value)}, expected sudo")
    return "sudo"


def _program(value: Any) -> str | None:
    text = _text(value)
    if text != "sudo" and (not _PROGRAM.fullmatch(text) or {".", ".."} & set(text.split("/"))):
        raise _Bad(f"found {describe(value)}, expected sudo's absolute path such as /opt/sudo/bin/sudo")
    return None if text == "sudo" else text


_OF_VALUE: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "ansible_ssh_host": ("address", _name),
    "ansible_host": ("address", _name),
    "ansible_ssh_port": ("port", _port),
    "ansible_port": ("port", _port),
    "ansible_ssh_user": ("user", _name),
    "ansible_user": ("user", _name),
    "ansible_private_key_file": ("key_file", _text),
    "ansible_ssh_private_key_file": ("key_file", _text),
    "ansible_ssh_pass": ("password", _password),
    "ansible_ssh_password": ("password", _password),
    "ansible_password": ("password", _password),
    "ansible_become": ("become", _bool),
    "ansible_become_user": ("become_user", _root),
    "ansible_become_pass": ("become_password", _password),
    "ansible_become_password": ("become_password", _password),
    "ansible_become_exe": ("sudo", _program),
    "ansible_sudo_exe": ("sudo", _program),
    "hostwright_sudo": ("sudo", _program),
    "hostwright_password": ("password", _password),
    "hostwright_become_password": ("become_password", _password),
    "ansible_timeout": ("connect_timeout", _seconds),
    "hostwright_connect_timeout": ("connect_timeout", _seconds),
    "hostwright_known_hosts": ("known_hosts", _text),
}
#: field of ``Host`` and reading function for each variable. If several variables set a field, the last one is used.
_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    name: reader
    for base, (field, read) in _OF_VALUE.items()
    for name, reader in (
        (base, (field, read)),
        *([(f"{base}{SUFFIX}", (field, _command))] if read is _password else []),
    )
}
#: checking function for each variable that has a single accepted value
_DEMANDS: Mapping[str, Callable[[Any], str]] = {"ansible_become_method": _sudo}
_SSH_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
#: rank of each level at which a variable is defined. Levels of groups have rank 0.
_LEVELS = {HOST_LEVEL: 1, COMMAND_LINE: 2}
#: fields of ``Host`` for ssh, which do not apply to this machine
_OF_SSH = {"port", "user", "key_file", "password", "connect_timeout", "known_hosts"}
VARIABLES = {*_READERS, *_DEMANDS, *_SSH_ARGUMENTS, "ansible_connection"}
