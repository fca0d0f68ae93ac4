"""Records made anew: a few sums over whole blocks of records are asked, then records are drawn."""
