"""The lab itself, with what stands in for hardware and vendors in it; opt-in (`make stand-ins`), hosts of its own."""
