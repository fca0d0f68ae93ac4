"""AC optimal power flow of populations: the programme (CasADi, IPOPT), the engine, and a check."""
