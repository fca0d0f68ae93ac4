"""``gridveil plan``: a local page to choose a guarantee on, with public data only.

`release_kind` has what can be released, an adapter each, and `choice` what the owner chose of it;
`stand_in_runs` has seeded releases of a public stand-in made in the background, in a process of its
own (`child_process`); `planner` puts together what the page shows; `server` serves it on the
loopback address. Internal.
"""
