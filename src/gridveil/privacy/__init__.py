"""The privacy core: sealed data, mechanisms, budget, ledger and statement.

Nothing here knows of wind or grids. To review it, read in this order:

1. `adjacency`: who counts as a neighbour; `sealed`: private values that can't be looked at.
2. `sensitivity`: from a bound on how far an answer moves to the scale of its noise; `noise`:
   OpenDP's samplers and privacy maps.
3. `mechanisms`: the five steps of every look at private data; it alone opens seals.
4. `budget` and `account`: exact epsilon, and what one release may spend.
5. `ledger`: what all releases of a dataset add up to; `totals` and `references` are its arithmetic.
6. `statement`: what a release says of all this; `strength`: how strong that is, in words.

`seeded` draws reproducible noise for studies, without a guarantee.
"""
