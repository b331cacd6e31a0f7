"""See the fleet: what each host has against what it shall have, what it suffers from, and since when."""
