"""Tests on a whole machine, one after the other: `make vm`."""
