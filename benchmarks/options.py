"""What the command lines of all benchmarks share."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter

__all__ = ["parser_of", "scores_splits"]


def parser_of(docstring: str | None) -> ArgumentParser:
    """A parser whose help is the docstring of the benchmark."""
    return ArgumentParser(description=docstring, formatter_class=RawDescriptionHelpFormatter)


def scores_splits(parser: ArgumentParser) -> ArgumentParser:
    """A benchmark that scores against gold: against that of dev, unless asked to report."""
    parser.add_argument(
        "--test", action="store_true", help="score the test splits too: to report what was decided, not to decide"
    )
    return parser
