"""A BMC for every lab host: one Redfish endpoint per lab, sushy-tools' emulator over the lab's own hosts.

Real: Redfish over HTTPS with a certificate to be checked, users, sessions, power, boot override, virtual media, and an
installation that replaces the disk. Stand-in: one endpoint for all hosts, and an installer that reads a seed's facts
(user, keys, name) and applies them to the lab's base image, whatever system the seed is for; its console says so.
"""

from lab.bmc.credentials import Credentials

__all__ = ["Credentials"]
