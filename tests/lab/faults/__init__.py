"""The fault suite: provisions real hosts, disturbs them at random moments, and requires that they end verified.

python -m tests.lab.faults --trials 210 --lanes 3 --seed 1

- A *case* (``cases``) defines a fault and its moment.
- A *trial* (``trial``) is one case on one layer at one random moment.
- The *bench* (``bench``) boots the hosts in the state before a layer.
- ``checks`` examines a host after a fault and at the end.
- ``results`` stores the results and writes the table of docs/reliability.md.
"""
