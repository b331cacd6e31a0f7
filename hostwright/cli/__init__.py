"""Command line of Hostwright: ``tasks`` declares verbs, ``shell`` parses command lines, ``views`` prints results."""

import sys

#: Invoke forbids bytecode files, although these files save a third of the start time.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
