"""Seeds: files for an unattended installation. A seed contains the new host key."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
