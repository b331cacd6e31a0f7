"""Judge a host by its facts (answers to probes): compute its status, deviations and findings.

All functions are pure.
"""
