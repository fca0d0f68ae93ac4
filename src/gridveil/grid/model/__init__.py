"""A network and the models on it: tables, checks, populations, and what of it can be private."""
