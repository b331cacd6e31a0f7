"""Stacks: their files, compatibility rules, artifacts and mirror."""
