"""Internals of the population OPF engine: flows, columns, solvers, certificates, workers."""
