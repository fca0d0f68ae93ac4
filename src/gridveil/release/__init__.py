"""What every release has: `plan` (plan, charge, run), `bundle` (its folder), `verification`.

Internal: `gridveil.wind`, `gridveil.grid` and `gridveil.verify` lead here.
"""
