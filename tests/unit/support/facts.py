"""Answers for resources under test, as those who write roles have them too."""

from hostwright.plan.testing import NOTHING, Replies, Reply, answer, changes_of, facts_for, reply_to

__all__ = ["NOTHING", "Replies", "Reply", "answer", "changes_of", "facts_for", "reply_to"]
