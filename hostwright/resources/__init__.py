"""The states that a host can be asked for, a file per family."""
