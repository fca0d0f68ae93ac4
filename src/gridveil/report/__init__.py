"""The report: one self-contained page, made from the statement and released data only. Internal."""
