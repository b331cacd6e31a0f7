"""Command line of Hostwright: ``tasks`` declares verbs, ``shell`` parses calls, ``views`` prints results."""

import sys

#: Invoke turns off bytecode files, which save a third of the start time
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
