"""Repair noisy networks by optimisation. Nothing here ever sees sealed data.

- `oracle`: costs and shortfalls of public models at released values, and their slopes;
- `master`: the small problems in the released values that cuts are added to;
- `serving`: the nearest values that serve every model (method "certified");
- `matching`: values whose costs agree with noisy ones (method "paper"), by convex-concave steps;
- `exact`: the same by a mixed-integer model, proved.
"""
