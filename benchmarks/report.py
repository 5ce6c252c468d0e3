"""How long the report of the NER crowd takes to build and to open: ``python benchmarks/report.py``.

Opening needs Chromium and Playwright; without them that line is left out.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import options
import quorate
from quorate.report import write_report

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "ner.jsonl.gz"


def main() -> None:
    options.parser_of(__doc__).parse_args()
    corpus = quorate.read(DATA)
    model = quorate.BSC("seq", epsilon0=30.0, temper=0.6, max_iter=20).fit(corpus)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        write_report(model, path, documents=1)  # compiled code is loaded
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            write_report(model, path)
            seconds.append(time.perf_counter() - began)
        print(f"report of {len(corpus):,} documents: built in {min(seconds):.2f} s, {path.stat().st_size / 1e6:.2f} MB")
        opening = opened(path)
        if opening is not None:
            print(f"opens in {opening / 1000:.2f} s")


def opened(path: Path) -> float | None:
    """Milliseconds to the end of the page's load event, the best of three; ``None`` without a browser."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        except Error:
            return None
        times = []
        for _ in range(3):
            page = browser.new_page()
            page.goto(path.as_uri())
            times.append(float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")))
        browser.close()
    return min(times)


if __name__ == "__main__":
    main()
