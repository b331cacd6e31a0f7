"""From roles and facts to a plan: the nouns, probes, facts, roles, plans and the release record."""
