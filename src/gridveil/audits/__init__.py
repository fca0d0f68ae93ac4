"""What is audited: every mechanism, and whole releases on small made-up data."""
