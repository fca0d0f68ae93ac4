"""Reading, cleaning and writing wind power records."""
