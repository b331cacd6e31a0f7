"""BMCs of the lab hosts: one Redfish endpoint per lab, by sushy-tools' emulator with the lab's hosts as systems.

Real: Redfish over HTTPS with a verifiable certificate, users, sessions, power, boot override, virtual media, and an
installation that replaces the disk. Stand-in: one endpoint for all hosts, and an installer that applies a seed to the
lab's base image.
"""

from lab.bmc.credentials import Credentials

__all__ = ["Credentials"]
