"""How tests call a command."""

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
"""Called with the arguments of a command; gives its exit code, standard output and standard error."""
