"""Hosts with a past, each through every verb; opt-in (`make past`), half an hour on two cores."""
