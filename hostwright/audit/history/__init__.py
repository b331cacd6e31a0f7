"""The results of audits over time: ``history.sqlite`` in the state directory, and the last facts of every host.

The history is an SQLite file (mode 0600, in a directory of mode 0700) that several processes may write at the same
time. A fact about a host is written when it changes; ``hostwright.audit.history.schema`` explains how. A host that
could not be read, an excluded layer and a rule that could not be checked change nothing: the last known fact holds
until an audit finds another. Inventories are distinguished by their location. Entries older than 400 days are removed,
except the start of facts that still hold.

The facts are in ``audits/INVENTORY/facts/HOST.last.json.gz``, in the same format as the facts of runs.
"""

from hostwright.audit.history.facts import FactStore
from hostwright.audit.history.hosthistory import FleetChange, FleetDiff, HistoryEvent, HostHistory
from hostwright.audit.history.items import Item
from hostwright.audit.history.store import History, sets_of

__all__ = ["FactStore", "FleetChange", "FleetDiff", "History", "HistoryEvent", "HostHistory", "Item", "sets_of"]
