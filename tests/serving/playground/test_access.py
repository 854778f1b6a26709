"""axe-core finds nothing against WCAG 2.2 AA in the page, in light and dark, for any pipeline."""

import json

import pytest

from seqkeras.serving.playground.page import NODE_MODULES
from tests.serving.playground.asked import ASKED
from tests.serving.playground.chromium import NEEDS_CHROMIUM, panel, served_page
from tests.serving.playground.test_streams import FRAMES, csv, played, stream

AXE = NODE_MODULES / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

pytestmark = [
    *NEEDS_CHROMIUM,
    pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm ci in serving/javascript"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anybody_out(browser, scheme, folders):
    with served_page(browser, folders, color_scheme=scheme, bypass_csp=True) as page:
        root = page.url.partition("#")[0]
        for name in folders:
            typed, _, _ = ASKED[name]
            page.goto(f"{root}#/{name}")
            page.get_by_role("heading", name=name, exact=True).wait_for()
            for label, text in typed.items():
                page.get_by_label(label, exact=True).fill(text)
            for details in page.locator("details").all():
                details.evaluate("it => { it.open = true; }")
            panel(page).locator(".time").filter(has_text="s").wait_for()
            require_nothing_found(page)
        page.goto(f"{root}#/classes")
        page.get_by_label("Second model").select_option("number")
        page.get_by_label("Text", exact=True).fill("the cat")
        panel(page, "of number, on the server").locator(".time").filter(has_text="s").wait_for()
        require_nothing_found(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_stream_keeps_nobody_out(browser, scheme, stream_bundles):
    with served_page(browser, stream_bundles, color_scheme=scheme, bypass_csp=True) as page:
        root = page.url.partition("#")[0]
        for name in ("Classify", "Tag"):
            page.goto(f"{root}#/{name}")
            page.get_by_role("heading", name=name, exact=True).wait_for()
            played(page, csv(FRAMES))
            stream(page).get_by_text("40 frames · ").wait_for()
            require_nothing_found(page)


def require_nothing_found(page, preload=True):
    """Require that axe finds nothing; `preload` lets it fetch the styles, which no file:// may."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("options => axe.run(options)", {"runOnly": RULES, "preload": preload})
    assert found["passes"]
    problems = [
        (problem["id"], [node["html"] for node in problem["nodes"]])
        for problem in found["violations"]
    ]
    assert not problems, json.dumps(problems, indent=1)
