"""Releases of a network's loads over time.

Data walks through the modules in this order: `load_table` (files and the public clock),
`queries` (sums of whole numbers, how far each moves, and which are asked with which epsilon),
`rebuild` (a series from noisy answers; model-made spread, on request), `serve_hours`
(makes the network serve every hour), `options`, `plan` (plan, charge, run; `assumptions` has what
it takes for granted, and warnings), `released` (the release; `pictures` draws it, `statement_facts`
are for its statement), `evaluation` (for the owner).
"""
