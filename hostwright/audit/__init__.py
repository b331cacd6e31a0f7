"""See the fleet: what each host has and what it should have, its known problems, and since when."""
