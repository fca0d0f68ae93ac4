"""Releases of a network's loads over time.

Data walks through the modules in this order: `load_table` (files and the public clock),
`queries` (sums of whole numbers, how far each moves, and which are asked with which epsilon),
`rebuild` (a series from noisy answers; model-made spread, on request), `serve_hours`
(makes the network serve every hour), `options`, `plan` (plan, charge, run), `disclosures` (what it
takes for granted, warnings, and what its statement says), `released` (the release; `pictures` draws
it), `evaluation` (for the owner).
"""
