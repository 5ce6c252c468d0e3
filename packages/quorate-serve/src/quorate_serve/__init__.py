"""``quorate serve``: a team annotates and reviews in the browser, and the consensus follows."""
