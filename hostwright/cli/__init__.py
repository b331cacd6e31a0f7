"""Command line of Hostwright: ``tasks`` declares the verbs, ``shell`` parses the command line, ``views`` prints
results.
"""

import sys

#: Invoke turns off writing bytecode files. Without these files, compiling Hostwright's modules takes a third of the
#: start time.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
