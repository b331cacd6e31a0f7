"""Peers: hosts whose figures should be equal. Which of them is an outlier, and what is measured again to be sure."""
