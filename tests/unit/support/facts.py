"""Answers for resources under test, with the helpers that role authors use."""

from hostwright.plan.model import Change
from hostwright.plan.testing import NOTHING, Replies, Reply, answer, changes_of, facts_for, reply_to

__all__ = ["NOTHING", "Replies", "Reply", "answer", "changes_of", "facts_for", "only", "reply_to"]


def only(changes: tuple[Change, ...]) -> Change:
    """The only change; fails for none or several."""
    assert len(changes) == 1, [change.what for change in changes]
    return changes[0]
