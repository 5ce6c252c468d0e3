"""The page that says how far the work is."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from quorate_serve.charts import bars
from quorate_serve.progress_page import progress_of
from quorate_serve.routes.common import ServiceOf, show

router = APIRouter(include_in_schema=False)


@router.get("/progress")
def progress_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """How far it is, how good it is, and whether to go on."""
    found = service.read(progress_of)
    days = bars([(f"{day:%d %b}", count) for day, count in found.days])
    spread = bars([(f"{n} labels" if n != 1 else "1 label", many) for n, many in found.by_labels])
    values = {"progress": found, "days": days, "spread": spread, "enough": service.settings.queue.per_document_min}
    return show(request, "progress.html", values)
