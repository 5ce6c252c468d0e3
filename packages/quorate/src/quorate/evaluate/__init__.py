"""How good a consensus is: scores, comparisons, settings by gold, and a look at the input."""
