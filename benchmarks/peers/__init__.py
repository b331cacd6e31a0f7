"""The same work for other tools, as their users write it, and what of a stack is at hand for all of them."""
