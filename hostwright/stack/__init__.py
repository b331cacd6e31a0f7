"""Stack files and what fits, artifacts and their mirror."""
