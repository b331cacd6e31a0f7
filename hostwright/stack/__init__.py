"""Stack files and their compatibility rules, artifacts and their mirror."""
