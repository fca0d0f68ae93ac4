"""Repair noisy networks by optimisation. Nothing here ever sees sealed data.

- `oracle`, `ac_oracle`: costs and shortfalls of public models at released values, and their slopes;
- `master`: the small problems in the released values that cuts are added to;
- `learned_prior`, `covariate_prior`: better estimates of noisy entries, from what they have in
  common, the second by `likelihood_cells`;
- `congestion_relief`: estimates of capacities without congestion that is likely their own error;
- `project`: the nearest values that serve every model (method "certified"); `ac_serving` moves
  them on until they do so in AC;
- `paper_steps`: values whose costs agree with noisy ones (method "paper"), by convex-concave
  steps; `paper_capacity` does it for capacities, from many starting points; `paper_programme`
  is the linear programme of both, and `paper_task` the problem that they solve;
- `paper_exact`: the same by branch and bound, proved, with `paper_relaxation` and `paper_bilevel`.
"""
