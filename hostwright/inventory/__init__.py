"""Reads Ansible inventories: hosts, groups, settings of connections, and variables of roles."""

from hostwright.inventory.binder import Binder
from hostwright.inventory.binding import bind, definitions, own_variables
from hostwright.inventory.loading import load, load_site
from hostwright.inventory.model import Definition, Group, Host, Inventory, Value, VariableLayer
from hostwright.inventory.patterns import fold, select
from hostwright.inventory.reading.sources import beside, identity_of, sources_of

__all__ = [
    "Binder",
    "Definition",
    "Group",
    "Host",
    "Inventory",
    "Value",
    "VariableLayer",
    "beside",
    "bind",
    "definitions",
    "fold",
    "identity_of",
    "load",
    "load_site",
    "own_variables",
    "select",
    "sources_of",
]
