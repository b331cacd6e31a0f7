"""What audits saw, over time: ``history.sqlite`` in the state directory, and the last facts of every host.

The history is an embedded SQLite file (mode 0600, in a directory of mode 0700), into which several processes may write
at the same time. What a host has is written down when it changes: ``hostwright.audit.history.schema`` tells how. A
host that could not be read, a layer that was left out, a rule that could not be checked end nothing: what was known
last is so until somebody sees otherwise. Inventories are told apart by where they lie. What is older than 400 days
goes, except the beginning of what is still so.

The facts lie in ``audits/INVENTORY/facts/HOST.last.json.gz``, in the form of those that runs keep.
"""

from hostwright.audit.history.facts import FactStore
from hostwright.audit.history.hosthistory import FleetChange, FleetDiff, HistoryEvent, HostHistory
from hostwright.audit.history.items import Item
from hostwright.audit.history.store import History, sets_of

__all__ = ["FactStore", "FleetChange", "FleetDiff", "History", "HistoryEvent", "HostHistory", "Item", "sets_of"]
