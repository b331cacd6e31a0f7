"""The engine of known failures: it recognises them in the output of a tool, or on a host.

The failures themselves belong to the roles (``roles/NAME/failures``, a tuple ``FAILURES``): the messages with which
installers, apt and pip fail, the signs on a host, the cause, the fix, and what a rebuild does. To add one, add a rule
to one of those files and, in the tests, a sample of its message.
"""

from hostwright.audit.failures.catalogue import Catalogue, catalogue, known
from hostwright.audit.failures.rule import Covers, Failure, FailureRule, Sign, Variant
from hostwright.audit.failures.treatment import Case, ForPeople, Hardware, Held, NoRoom, Stuck, Tangled, Treatment

__all__ = [
    "Case", "Catalogue", "Covers", "Failure", "FailureRule", "ForPeople", "Hardware", "Held", "NoRoom", "Sign", "Stuck",
    "Tangled", "Treatment", "Variant", "catalogue", "known",
]  # fmt: skip
