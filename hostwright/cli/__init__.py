"""The command line: tasks (the options of each verb), verbs (words to calls), views (results to text)."""

import sys

#: Invoke turns bytecode files off. Without them, compiling our modules takes a third of the start time.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
