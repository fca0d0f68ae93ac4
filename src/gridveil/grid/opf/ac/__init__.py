"""AC optimal power flow of populations: programme (CasADi, IPOPT), engine and independent check."""
