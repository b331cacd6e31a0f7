"""Rebuild of hosts: a diagnosis, the least invasive way that works, and the time of each phase.

``diagnosis`` has the findings, ``ways.decide`` chooses the way, ``clock`` measures the phases, ``records`` stores every
rebuild on this machine and ``report`` summarizes them. None of these modules connects to a host.
"""
