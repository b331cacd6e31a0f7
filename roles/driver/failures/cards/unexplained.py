"""Rule for a failing nvidia-smi, for cases in which no other rule about driver or cards gives a cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hostwright.failures import AuditContext, FailureRule, Hardware, Sign, Unread
from hostwright.standard.roles.driver import Driver
from hostwright.standard.roles.driver.failures.cards.lost import smi_status
from hostwright.standard.roles.driver.failures.cards.smi import MANUAL, ended
from hostwright.standard.roles.driver.failures.state import driver_of
from hostwright.standard.roles.driver.gpus import NO_PROGRAM

GPU = "gpu"


def unexplained(rules: Iterable[FailureRule]) -> FailureRule:
    """Return the rule for a failing nvidia-smi. The rule applies only if no rule in ``rules`` has findings."""
    signs = [rule.sign for rule in rules if rule.sign]

    def left(ctx: AuditContext) -> Iterator[str]:
        """nvidia-smi ends with an error although the driver is as the stack requires, and no other known problem
        explains it.
        """
        ours = "driver" in ctx.desired.of_host and isinstance(ctx.variables.get("driver", Driver()), Driver)
        if ours:
            driver_of(ctx)  # `driver_of` raises Unread if the driver's state is unknown
        status = smi_status(ctx)
        told = (sign for sign in signs if ours or sign.layer == GPU)
        if status in (0, NO_PROGRAM) or ctx.differs("driver") or any(_seen(sign, ctx) for sign in told):
            return
        yield from ended(ctx, status)

    return FailureRule(
        "nvidia-smi-failed",
        "",
        "nvidia-smi ends with an error without a known cause: no card can be read, and programs will probably fail too",
        "Check the message above and dmesg | grep -E 'NVRM|Xid' on the host; run nvidia-bug-report.sh before a "
        "reboot, which may help but destroys the evidence",
        MANUAL,
        sign=Sign(GPU, left),
        weight="consequence",
        treatment=Hardware(
            "power cycle", "no cause is known: a reboot is the least that can help", gently=True, tries=1
        ),
    )


def _seen(sign: Sign, ctx: AuditContext) -> bool:
    try:
        return any(True for _ in sign.seen(ctx))
    except Unread:
        return False
