"""The engine that solves populations of OPF models: flows, columns, solvers, proofs, workers."""
