"""Recognise known failures in the output of a tool, or on a host.

Each role defines its failure rules in ``roles/NAME/failures``, as a tuple ``FAILURES``. To add a failure, add a rule to
such a file, and a sample of its message to the tests.
"""

from hostwright.audit.failures.catalogue import Catalogue, catalogue, known
from hostwright.audit.failures.rule import Covers, Failure, FailureRule, Sign, Variant
from hostwright.audit.failures.treatment import Case, ForPeople, Hardware, Held, NoRoom, Stuck, Tangled, Treatment

__all__ = [
    "Case", "Catalogue", "Covers", "Failure", "FailureRule", "ForPeople", "Hardware", "Held", "NoRoom", "Sign", "Stuck",
    "Tangled", "Treatment", "Variant", "catalogue", "known",
]  # fmt: skip
