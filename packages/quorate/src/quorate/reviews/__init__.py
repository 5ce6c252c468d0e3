"""Reviews: who corrected what, how far reviewers agree, and what is to be adjudicated.

>>> import tempfile
>>> from pathlib import Path
>>> import quorate
>>> line = '{"id": "1", "tokens": ["Ada", "sang"], "tags": ["%s", "O"], "reviewer": "%s"}'
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "ann.jsonl").write_text(line % ("B-PER", "ann"))
...     _ = Path(folder, "bob.jsonl").write_text(line % ("O", "bob"))
...     found = quorate.reviews.read([f"{folder}/ann.jsonl", f"{folder}/bob.jsonl"])
>>> [reviewer.name for reviewer in found.reviewers], len(found.disputes)
(['ann', 'bob'], 1)
"""

from quorate.corpus.decisions import Decision, Review
from quorate.reviews.adjudication import write_adjudication
from quorate.reviews.reading import read, read_layers
from quorate.reviews.reviews import Dispute, Reviewer, Reviews, Says

__all__ = [
    "Decision",
    "Dispute",
    "Review",
    "Reviewer",
    "Reviews",
    "Says",
    "read",
    "read_layers",
    "write_adjudication",
]
