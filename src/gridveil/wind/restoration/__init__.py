"""The exact restoration: passes over rows, and the small problem between them."""
