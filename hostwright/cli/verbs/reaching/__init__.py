"""Verbs that reach hosts for something other than their stack: their keys, a login, a command of the operator."""
