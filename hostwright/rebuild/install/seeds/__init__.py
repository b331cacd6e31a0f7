"""Seeds: instructions for installers, for unattended installations with a host key that is known in advance."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")  #: templates of the seeds
