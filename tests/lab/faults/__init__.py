"""The fault suite: hosts are provisioned for real, disturbed at random moments, and must end verified all the same.

    python -m tests.lab.faults --trials 210 --lanes 3 --seed 1

A *case* (``cases``) says what is done to a host and when; a *trial* (``trial``) is one case on one layer, at one
random moment; the *bench* (``bench``) brings up the hosts, in the state before a layer; ``checks`` looks at what is
there after a fault and at the end; ``results`` keeps what was seen and makes the table of docs/reliability.md.
"""
