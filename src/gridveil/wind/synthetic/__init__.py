"""Draw synthetic records from a few noisy sums over whole blocks of records."""
