"""A BMC for every lab host: one Redfish endpoint a lab, sushy-tools' emulator over the lab's own hosts.

Real: Redfish over HTTPS with a certificate to be checked, users, sessions, power, boot override, virtual media, and an
installation that takes the disk away. Stand-in: one endpoint for all hosts, and an installer that reads a seed's facts
(user, keys, name) and puts them on the lab's base image, whatever system the seed is for; its console says so.
"""

from lab.bmc.credentials import Credentials

__all__ = ["Credentials"]
