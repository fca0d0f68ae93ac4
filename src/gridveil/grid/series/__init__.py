"""A network's loads over time: what is private of them, what is asked, and how they are rebuilt.

Data walks through the modules in this order: `table` (files and the public clock), `queries` (sums
of whole numbers, and how far each moves), `shares` (which are asked, for how much), `rebuild` (a
series from noisy answers), `texture` (a spread on request), `hours` (every hour served), `method`
(the options), `plan` (plan, charge, run; `words` says what it takes for granted), `released` (what
comes of it), `evaluation` (for the owner).
"""
