"""In which order the roles of one host run, and what they wait for."""
