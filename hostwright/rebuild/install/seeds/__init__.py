"""Seeds: files that tell an installer how to install a host unattended, and that contain the new host key."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")  #: directory with the templates of seeds
