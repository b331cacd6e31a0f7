"""What people type and see: tasks (the options of each verb), verbs (words to calls), views (results to text)."""

import sys

#: Invoke forbids it unless it is told otherwise, and compiling our modules anew takes a third of a start.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
