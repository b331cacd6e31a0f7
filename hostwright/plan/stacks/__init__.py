"""The stacks that an inventory may use: their list, the files that they need, and which hosts they fit."""
