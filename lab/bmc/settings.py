"""Stored settings of a host's BMC, which survive a reinstallation of the host."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, get_args

from lab.config import Lab
from lab.records import write_atomically

Target = Literal["None", "Pxe", "Cd", "Hdd", "UefiHttp"]
Enabled = Literal["Disabled", "Once", "Continuous"]
TARGETS: tuple[str, ...] = get_args(Target)
ENABLED: tuple[str, ...] = get_args(Enabled)


@dataclass(frozen=True, slots=True)
class Media:
    """Image URL in a virtual drive. The lab never fetches the image."""

    image: str = ""
    inserted: bool = False
    write_protected: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """Stored settings of one host's BMC."""

    target: str = "None"  #: boot target, one of `TARGETS`
    enabled: str = "Disabled"  #: duration of the boot override, one of `ENABLED`
    mode: str = "UEFI"
    http_uri: str = ""  #: URL from which UEFI boots over HTTP
    cd: Media = field(default_factory=Media)

    def boots_installer(self) -> bool:
        """Return whether the next power-on starts an installer."""
        if self.enabled == "Disabled":
            return False
        return self.target in ("Pxe", "UefiHttp") or (self.target == "Cd" and self.cd.inserted)

    def after_boot(self) -> Settings:
        """Return the settings after a boot, without a one-time boot override."""
        return replace(self, target="None", enabled="Disabled") if self.enabled == "Once" else self


def read_settings(lab: Lab, host: str) -> Settings:
    """Return the BMC settings of ``host``."""
    file = lab.bmc / "systems" / f"{host}.json"
    if not file.exists():
        return Settings()
    values = json.loads(file.read_text())
    return Settings(**{**values, "cd": Media(**values["cd"])})


def write_settings(lab: Lab, host: str, settings: Settings) -> None:
    """Store ``settings`` for the BMC of ``host``."""
    file = lab.bmc / "systems" / f"{host}.json"
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps(asdict(settings)))
