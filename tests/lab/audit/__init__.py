"""The audit on real hosts: planted faults are found, no others are reported, each fix works."""
