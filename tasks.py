"""The front door: the tasks of Hostwright, and those of the lab, which this repository alone has."""

from hostwright.cli.tasks import namespace
from lab.tasks import lab

namespace.add_collection(lab)
