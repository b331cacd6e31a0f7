"""Hostwright: bare-metal GPU hosts, brought to one exact, verified software stack over SSH."""

__version__ = "0.1.0"
