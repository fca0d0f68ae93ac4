"""Repair noisy networks by optimisation. Nothing here ever sees sealed data.

- `oracle`: costs and shortfalls of public models at released values, and their slopes;
- `master`: the small problems in the released values that cuts are added to;
- `prior`: what noisy entries have in common;
- `project`: the nearest values that serve every model (method "certified");
- `paper_steps`: values whose costs agree with noisy ones (method "paper"), by convex-concave
  steps; `paper_limits` holds lines down from where they end;
- `paper_exact`: the same by branch and bound, proved, with `paper_relaxation` and `paper_models`.
"""
