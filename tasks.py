"""The front door: the tasks of Hostwright, and those of the lab, which this repository alone has."""

from invoke import Collection

from hostwright.cli.tasks import VERBS
from lab.tasks import lab

namespace = Collection(*VERBS, lab)
