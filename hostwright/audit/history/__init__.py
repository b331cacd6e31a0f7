"""The results of audits over time: ``history.sqlite`` in the state directory, and the last facts of each host.

The history is an SQLite file (mode 0600, in a directory of mode 0700). Several processes may write the file at the same
time. A fact about a host is written when the fact changes. If a host, a layer or a rule is not checked, its last known
facts are kept. Inventories are identified by their location. Entries are removed after 400 days, except the start times
of facts that still hold.

The last probe results of each host are in ``audits/INVENTORY/facts/HOST.last.json.gz``, in the same format as the fact
files of runs.
"""

from hostwright.audit.history.facts import FactStore
from hostwright.audit.history.hosthistory import FleetChange, FleetDiff, HistoryEvent, HostHistory
from hostwright.audit.history.items import Item
from hostwright.audit.history.store import History, sets_of

__all__ = ["FactStore", "FleetChange", "FleetDiff", "History", "HistoryEvent", "HostHistory", "Item", "sets_of"]
