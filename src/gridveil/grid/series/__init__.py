"""Releases of a network's loads over time.

Data walks through the modules in this order: `table` (files and the public clock), `queries` (sums
of whole numbers, and how far each moves), `shares` (which queries are asked, and their epsilons),
`rebuild` (a series from noisy answers), `texture` (model-made spread, on request), `serve_hours`
(makes the network serve every hour), `options`, `plan` (plan, charge, run; `assumptions` has what
it takes for granted, and warnings), `released` (the release; `pictures` draws it, `statement_facts`
are for its statement), `evaluation` (for the owner).
"""
