"""Hostwright beside other tools on this machine's own lab: what each costs, measured alternately in one run."""
