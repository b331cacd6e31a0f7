"""BMCs of the lab hosts: one Redfish endpoint per lab, by sushy-tools' emulator with the lab's hosts as systems.

As with real BMCs, clients use Redfish over HTTPS with a verifiable certificate, users, sessions, power, boot override
and virtual media. Unlike real BMCs, one endpoint serves all hosts. An installation replaces the disk as real ones do,
but applies a seed (the installer's settings) to the lab's base image.
"""

from lab.bmc.credentials import Credentials

__all__ = ["Credentials"]
