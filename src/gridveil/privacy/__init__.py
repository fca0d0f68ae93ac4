"""The privacy core: sealed data, mechanisms, budget, ledger and statement.

Nothing here knows of wind or grids. See `mechanisms` for the order in which things happen.
"""
