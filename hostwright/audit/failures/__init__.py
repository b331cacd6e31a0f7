"""What an output means, and what is wrong on a host: the engine of known failures.

The failures themselves stand with the roles (``roles/NAME/failures``, a tuple ``FAILURES``): messages that installers,
apt and pip are known to fail with, signs on a host, cause, cure, and what a rebuild does about each. To add
one, add a row to one of those files and, in the tests, a sample of its message.
"""

from hostwright.audit.failures.catalogue import Catalogue, catalogue, known
from hostwright.audit.failures.rule import Covers, Failure, FailureRule, Sign
from hostwright.audit.failures.treatment import Case, ForPeople, Hardware, Held, NoRoom, Stuck, Tangled, Treatment

__all__ = [
    "Case", "Catalogue", "Covers", "Failure", "FailureRule", "ForPeople", "Hardware", "Held", "NoRoom", "Sign", "Stuck",
    "Tangled", "Treatment", "catalogue", "known",
]  # fmt: skip
