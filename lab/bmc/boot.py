"""The Redfish system resource with a one-time boot override.

The emulator always reports the override ``Continuous``, so a client that sets ``Once`` would find no change.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import flask
from sushy_tools import error

from lab.bmc.settings import ENABLED, TARGETS, Settings
from lab.bmc.systems import Systems

_MODES = ("UEFI", "Legacy")
_KNOWN = {
    "BootSourceOverrideTarget": ("target", TARGETS),
    "BootSourceOverrideEnabled": ("enabled", ENABLED),
    "BootSourceOverrideMode": ("mode", _MODES),
}


def system_view(emulated: Callable[[str], flask.Response], systems: Systems) -> Callable[[str], flask.Response]:
    """Return the Flask view of one system: the emulator's view ``emulated`` with boot overrides."""

    def view(identity: str) -> flask.Response:
        systems.uuid(identity)
        if flask.request.method == "PATCH":
            asked = flask.request.get_json()
            systems.remember(identity, changed(systems.settings(identity), asked))
            return flask.Response(status=204)
        document = json.loads(emulated(identity).get_data())
        return flask.jsonify({**document, **_identity(identity), "Boot": boot(systems.settings(identity))})

    return view


def changed(settings: Settings, asked: Any) -> Settings:
    """Return ``settings`` after the PATCH request ``asked``. Raises `BadRequest` for an invalid request."""
    override = asked.get("Boot") if isinstance(asked, dict) and set(asked) == {"Boot"} else None
    if not isinstance(override, dict) or not override:
        raise error.BadRequest("only Boot can be changed; send a mapping with the changes")
    changes: dict[str, str] = {}
    for name, value in override.items():
        if name == "HttpBootUri" and (value is None or isinstance(value, str)):
            changes["http_uri"] = value or ""
        elif name in _KNOWN and value in _KNOWN[name][1]:
            changes[_KNOWN[name][0]] = value
        else:
            raise error.BadRequest(f"{name} cannot be set to this value")
    if "target" in changes and "enabled" not in changes:
        # without a duration, a target applies only to the next boot (Redfish specification)
        changes["enabled"] = "Disabled" if changes["target"] == "None" else "Once"
    if changes.get("enabled") == "Disabled":
        changes["target"] = "None"
    return replace(settings, **changes)  # type: ignore[arg-type]  # the keys above are text fields


def boot(settings: Settings) -> dict[str, object]:
    """Return the part ``Boot`` of a Redfish system resource for ``settings``."""
    return {
        "BootSourceOverrideEnabled": settings.enabled,
        "BootSourceOverrideTarget": settings.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
        "BootSourceOverrideMode": settings.mode,
        "HttpBootUri": settings.http_uri,
    }


def _identity(name: str) -> dict[str, object]:
    """Return properties such as manufacturer and model, which mark ``name`` as a lab host."""
    return {
        "UUID": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.lab.hostwright")),
        "Manufacturer": "Hostwright lab",
        "Model": "stand-in (systemd-nspawn)",
        "SerialNumber": f"LAB-{name}",
        "BiosVersion": "stand-in",
        "Status": {"State": "Enabled", "Health": "OK"},
    }
