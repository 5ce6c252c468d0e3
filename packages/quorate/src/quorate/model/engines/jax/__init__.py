"""Passes on an accelerator, or on this machine's cores, through JAX: 32-bit, with all data resident on the device.

Documents lie end to end in *lanes* of like length, side by side, and one scan over the positions does all lanes. The
layout, the passes, the tables of a model and its KL, and the output pass are all made on the device; what travels is
the corpus once, a few numbers a pass, and the consensus. Sizes are rounded up, so that corpora of about the same size
share compiled code, which is kept on disk.

Letters: A labels given to a token, L positions, B lanes, J labels; arrays are ``[L, J, B]``.
"""

from quorate.model.engines.jax.engine import JaxEngine

__all__ = ["JaxEngine"]
