"""One command for a machine with a GPU that is lent for a quarter of an hour: ``make gpu``."""
