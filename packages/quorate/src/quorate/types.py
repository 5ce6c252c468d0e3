"""Every type that a function of this package gives back, for annotations: ``from quorate.types import Expected``.

Those that people make or call by name are in :mod:`quorate` itself, and those of scores, formats, audits and so on in
the modules of these names; the others are here.

>>> import quorate
>>> isinstance(quorate.aggregate(quorate.sample(), "mv").expected, Expected)
True
"""

from __future__ import annotations

from quorate.active.simulation import Curve, Run, Simulation
from quorate.active.simulation import Plan as SimulationPlan
from quorate.active.stopping import Change
from quorate.active.suggest import Advice, Suggestion
from quorate.audit.acceptance import Guaranteed, GuaranteedSpans
from quorate.audit.claims import Claims
from quorate.audit.recalibration import Line, OffBeyondChance, Recalibration
from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import Kind
from quorate.corpus.records import Source
from quorate.corpus.schemes import Invalid
from quorate.estimators.updating import Updated
from quorate.formats.layering import Layer
from quorate.model.calibration import Calibration
from quorate.model.correction import Belief, Correction
from quorate.model.fit import Fitted
from quorate.model.loop import Progress, StopReason, Trace
from quorate.model.settings import AnnotatorModel, Decode, Inference, Settings, TruthModel
from quorate.model.start import Start
from quorate.result.ambiguity import Ambiguity
from quorate.result.annotators import AnnotatorSummaries, AnnotatorSummary
from quorate.result.habits import SpanHabits
from quorate.result.layers import LayeredConsensus
from quorate.result.result import Accepted
from quorate.result.sources import SourceKind, Sources, Together
from quorate.result.tallies import Expected, SpanTallies
from quorate.taggers import Tagger
from quorate.taggers.loop import TaggerRound

__all__ = [
    "Accepted",
    "Advice",
    "Ambiguity",
    "AnnotatorModel",
    "AnnotatorSummaries",
    "AnnotatorSummary",
    "Belief",
    "Calibration",
    "Change",
    "Claims",
    "Correction",
    "Curve",
    "Decode",
    "Expected",
    "Fitted",
    "Guaranteed",
    "GuaranteedSpans",
    "Inference",
    "Invalid",
    "Kind",
    "Layer",
    "LayeredConsensus",
    "Line",
    "OffBeyondChance",
    "Progress",
    "Recalibration",
    "Run",
    "Settings",
    "Simulation",
    "SimulationPlan",
    "Source",
    "SourceKind",
    "Sources",
    "SpanHabits",
    "SpanTallies",
    "Start",
    "StopReason",
    "Suggestion",
    "Tagger",
    "TaggerRound",
    "Together",
    "Trace",
    "TruthModel",
    "Unit",
    "Updated",
]
