"""Effects: the states of a claim and the rules between them. Pure; the journal keeps the rows.

A side effect is claimed before it is sent and settled after. Four states are stored:

- ``claimed``: about to be sent, or being sent, under a lease. A lease that ran out is read as
  ``unknown``: whoever held it may have sent it, and nobody can tell.
- ``done``: it happened. Final.
- ``not_done``: it certainly did not happen. May be claimed again.
- ``unknown``: it may have happened. Stays so until it is verified or a person settles it.
"""
