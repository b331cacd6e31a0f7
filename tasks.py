"""The tasks of Hostwright, and those of the lab, which only this repository has."""

import sys

from invoke import Collection

from hostwright.cli.tasks import VERBS
from lab.tasks import lab, tell_of_a_lost_lab

namespace = Collection(*VERBS, lab)
tell_of_a_lost_lab(sys.argv)
