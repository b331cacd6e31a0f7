"""Files and programs, each read into a draft of the inventory."""
