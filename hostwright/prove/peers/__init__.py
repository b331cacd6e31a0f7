"""Peers are hosts whose figures should be equal: find outliers, and select the measurements to repeat."""
