"""Seeds: what an installer is told, so that an operating system is installed unattended and its host key is known."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")  #: the seeds themselves
