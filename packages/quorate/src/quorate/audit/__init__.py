"""Audits: check a few documents, and know how good the whole consensus is, with a guarantee.

>>> import quorate
>>> corpus = quorate.sample()
>>> consensus = quorate.aggregate(corpus)
>>> plan = quorate.audit.plan(consensus, 40)
>>> checked = {name: corpus[name].gold for name in plan.ids}
>>> audit = quorate.audit.result(consensus, checked, plan=plan)
>>> audit.f1.low <= audit.f1.value <= audit.f1.high
True
"""

from quorate.audit.audited import Audit, Scores, result
from quorate.audit.estimate import Estimate
from quorate.audit.plan import Plan, extended, plan

__all__ = ["Audit", "Estimate", "Plan", "Scores", "extended", "plan", "result"]
