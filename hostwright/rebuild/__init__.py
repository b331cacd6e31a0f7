"""Rebuilding a host: what is known of it, the shortest sound way back to service, and how long each phase took.

``diagnosis`` is what was found, ``ways.decide`` names the way, ``clock`` times the phases, ``records`` keeps every
rebuild on this machine and ``report`` sums them up. Nothing here touches a host.
"""
