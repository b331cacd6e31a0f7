"""The stacks that an inventory may use: their list, their files, and the hosts that they fit."""
