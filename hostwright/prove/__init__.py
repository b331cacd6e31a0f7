"""Proof by measurement: roles' programs run on hosts; their figures judged alone, over time and over the fleet."""
