"""Hosts to install, for tests of seeds, and a schema of autoinstall according to its documentation."""

from __future__ import annotations

from typing import Any

from hostwright.common.input.yamlfile import Origin
from hostwright.inventory import Host, Value, VariableLayer
from hostwright.rebuild.install.seeds.reading import read_install
from hostwright.rebuild.install.seeds.settings import Install
from hostwright.transport.identity.keys import KeyPair, generate

USER_KEY = f"{generate().public.line} someone@desk"
KEYS: KeyPair = generate()
URL = "http://10.0.0.1:8098/some-path"
#: Required settings; the others have defaults.
MINIMUM: dict[str, Any] = {
    "serve": "10.0.0.1:8098",
    "os": "ubuntu",
    "release": "22.04",
    "disk": "/dev/nvme0n1",
    "ssh_keys": [USER_KEY],
    "path": "gpu07",
    "allow_from": "any",
}
FIXED = {"interface": "eno1", "address": "10.0.0.7/24", "gateway": "10.0.0.1", "nameservers": ["10.0.0.2", "10.0.0.3"]}
HASH = "$6$saltsaltsalt$" + "x" * 86
#: Settings that lead to different seeds, for both systems unless they set one.
KINDS: dict[str, dict[str, Any]] = {
    "least": {},
    "lvm": {"layout": "lvm"},
    "raid1": {"layout": "raid1", "second_disk": "/dev/nvme1n1", "os": "ubuntu"},
    "match": {"disk": {"model": "SAMSUNG MZ*", "size": "smallest", "ssd": True}, "os": "ubuntu"},
    "serial": {"layout": "lvm", "disk": {"serial": "S6CKNN0T*"}, "os": "ubuntu"},
    "dhcp on one": {"network": {"mac": "0c:42:a1:00:00:07"}},
    "fixed": {"network": FIXED},
    "fixed by mac": {"network": {**FIXED, "interface": "", "mac": "0C:42:A1:00:00:07"}},
    "fixed v6": {
        "network": {"interface": "eno1", "address": "fd00::7/64", "gateway": "fd00::1", "nameservers": ["fd00::2"]}
    },
    "mirror": {"mirror": "http://mirror.example:8080/deb", "proxy": "http://10.0.0.1:3128"},
    "password": {"password_hash": HASH},
    "more": {"packages": ["htop", "linux-image-generic"], "kernel_arguments": ["console=ttyS0,115200", "iommu=pt"]},
    "commands": {"late_commands": ["echo 'a: b' > /target/x", 'printf %s "{{ x }}"\n# two lines\necho ü😀']},
    "place": {"timezone": "Europe/Berlin", "locale": "de_DE.UTF-8", "keyboard": "de", "hostname": "n7", "user": "ops"},
}


def host(install: Any, *, name: str = "gpu07.example", user: str | None = "ops", **others: Any) -> Host:
    """A host with ``hostwright_install`` (``None``: without) and other variables, all as host variables."""
    given = ({} if install is None else {"hostwright_install": install}) | others
    values = {
        key: Value(value, Origin("hosts.yml", line, 3), "host") for line, (key, value) in enumerate(given.items(), 1)
    }
    return Host(name, user=user, layers=(VariableLayer("host", values),), vars=values)


def install(**changes: Any) -> Install:
    """Valid settings with changes; for Debian with one of its releases."""
    release = {"release": "12"} if changes.get("os") == "debian" else {}
    read = read_install(host({**MINIMUM, **release, **changes}))
    assert read is not None
    return read


def kinds(system: str) -> dict[str, dict[str, Any]]:
    """The kinds of settings that a system's installer supports, by name."""
    return {name: {**kind, "os": system} for name, kind in KINDS.items() if kind.get("os", system) == system}


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_DISK = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {
        **dict.fromkeys(("path", "serial", "model", "vendor"), _TEXT),
        "ssd": {"type": "boolean"},
        "size": {"enum": ["largest", "smallest"]},
    },
}
#: Our own schema: the keys of Ubuntu's "Autoinstall configuration reference manual" that seeds use, with their types.
AUTOINSTALL: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "identity"],
    "properties": {
        "version": {"const": 1},
        "locale": _TEXT,
        "timezone": _TEXT,
        "proxy": {"type": "string", "pattern": "^https?://"},
        "keyboard": {"type": "object", "additionalProperties": False, "properties": {"layout": _TEXT}},
        "identity": {
            "type": "object",
            "additionalProperties": False,
            "required": ["username", "hostname", "password"],
            "properties": dict.fromkeys(("username", "hostname", "password"), _TEXT),
        },
        "ssh": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"install-server": {"const": True}, "allow-pw": {"const": False}, "authorized-keys": _TEXTS},
        },
        "storage": {
            "type": "object",
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {
                "layout": {
                    "type": "object",
                    "required": ["name", "match"],
                    "additionalProperties": False,
                    "properties": {
                        "name": {"enum": ["lvm", "direct"]},
                        "match": _DISK,
                        "sizing-policy": {"enum": ["scaled", "all"]},
                    },
                },
                "config": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "id"],
                        "properties": {
                            "type": {"enum": ["disk", "partition", "raid", "format", "mount"]},
                            "match": _DISK,
                        },
                    },
                },
            },
        },
        "network": {
            "type": "object",
            "additionalProperties": False,
            "required": ["version", "ethernets"],
            "properties": {
                "version": {"const": 2},
                "ethernets": {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["dhcp4"],
                        "properties": {
                            "match": {"type": "object", "required": ["macaddress"]},
                            "dhcp4": {"type": "boolean"},
                            "addresses": _TEXTS,
                            "routes": {"type": "array", "items": {"type": "object", "required": ["to", "via"]}},
                            "nameservers": {"type": "object", "properties": {"addresses": _TEXTS}},
                        },
                    },
                },
            },
        },
        "apt": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "geoip": {"type": "boolean"},
                "primary": {"type": "array", "items": {"type": "object", "required": ["arches", "uri"]}},
            },
        },
        "packages": _TEXTS,
        "updates": {"enum": ["security", "all"]},
        "late-commands": _TEXTS,
        "shutdown": {"enum": ["reboot", "poweroff"]},
        "user-data": {
            "type": "object",
            "additionalProperties": False,
            "required": ["ssh_keys", "ssh_deletekeys"],
            "properties": {
                "timezone": _TEXT,
                "ssh_deletekeys": {"const": True},
                "ssh_keys": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["ed25519_private", "ed25519_public"],
                    "properties": dict.fromkeys(("ed25519_private", "ed25519_public"), _TEXT),
                },
                "bootcmd": _TEXTS,
            },
        },
    },
}
