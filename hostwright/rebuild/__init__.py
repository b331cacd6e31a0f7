"""Rebuild of hosts that are out of order: diagnosis, the least invasive repair that works, and durations of its phases.

``ways.diagnosis`` has the findings, ``ways.ways`` chooses the repair (``rebuild.Way``), ``host.clock`` measures the
phases, ``records`` stores every rebuild on this machine, and ``report`` summarizes rebuilds. None of these modules
connects to a host.
"""
