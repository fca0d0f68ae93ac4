"""The exact restoration of records: passes over rows, and a small problem between them."""
