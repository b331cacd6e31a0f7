"""What a host's BMC remembers: the boot override and the virtual media. It outlives the host's disk."""

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
    """The contents of a virtual drive: only an address, since the image itself is never fetched."""

    image: str = ""
    inserted: bool = False
    write_protected: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one system."""

    target: str = "None"  #: one of `TARGETS`
    enabled: str = "Disabled"  #: one of `ENABLED`
    mode: str = "UEFI"  #: or ``Legacy``
    http_uri: str = ""  #: the URL that a boot over UEFI HTTP would load
    cd: Media = field(default_factory=Media)

    def boots_installer(self) -> bool:
        """Tell whether the next power-up starts an installer and not the system on the disk."""
        if self.enabled == "Disabled":
            return False
        return self.target in ("Pxe", "UefiHttp") or (self.target == "Cd" and self.cd.inserted)

    def after_boot(self) -> Settings:
        """Return the settings after a boot of the host: one-time settings are used up."""
        return replace(self, target="None", enabled="Disabled") if self.enabled == "Once" else self


def read_settings(lab: Lab, host: str) -> Settings:
    """Return what the BMC of ``host`` remembers."""
    file = lab.bmc / "systems" / f"{host}.json"
    if not file.exists():
        return Settings()
    values = json.loads(file.read_text())
    return Settings(**{**values, "cd": Media(**values["cd"])})


def write_settings(lab: Lab, host: str, settings: Settings) -> None:
    """Have the BMC of ``host`` remember ``settings``."""
    file = lab.bmc / "systems" / f"{host}.json"
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps(asdict(settings)))
