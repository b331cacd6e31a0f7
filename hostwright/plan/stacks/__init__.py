"""The stacks that the hosts of an inventory may use: their list, their files, and the hosts that they fit."""
