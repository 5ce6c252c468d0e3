"""Names become integers: a corpus as flat arrays, and what can be done with those."""
