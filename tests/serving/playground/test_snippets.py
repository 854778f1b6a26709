"""The code of a request answers as the page does: each snippet runs, in its language."""

import ast
import json
import os
import shutil
import subprocess
import sys

import pytest

from seqkeras import serving
from seqkeras.serving.playground import page_of, write_static
from seqkeras.serving.playground.page import PACKAGE
from tests.conftest import CHECKOUT
from tests.serving.playground.asked import ASKED, fill
from tests.serving.playground.chromium import (
    NEEDS_CHROMIUM,
    NEEDS_PACKAGES,
    opened,
    panel,
    served_page,
)
from tests.serving.web_server import web_server

pytestmark = [
    *NEEDS_CHROMIUM,
    *(
        pytest.mark.skipif(not shutil.which(name), reason=f"needs {name}")
        for name in ("curl", "node")
    ),
]
AS_JSON = "console.log = (value) => process.stdout.write(JSON.stringify(value));\n"
COMMANDS = {
    "curl": lambda code: ["sh", "-c", code],
    "Python": lambda code: [sys.executable, "-c", code],
    "JavaScript": lambda code: ["node", "--input-type=module", "-e", AS_JSON + code],
}
STRANGE = {
    "quotes": "it's 'q' \"twice\" \\ \\n `id` $(id) $HOME !",
    "lines": "two\nlines\ttab \u2028 \u202e\u200b \x7f \u732b \U0001f469\u200d\U0001f4bb e\u0301",
    "markup": "</pre><b> &amp; %s %% {0} @x",
    "long": "\u00e9" * 40_000,
}


def answer_of(language, code, streams=False, **options):
    """What a snippet prints, as JSON or as a text."""
    done = subprocess.run(
        COMMANDS[language](code), capture_output=True, encoding="utf-8", timeout=60, **options
    )
    assert done.returncode == 0, done.stderr
    if streams:
        return text_of(done.stdout) if language == "curl" else done.stdout
    return (ast.literal_eval if language == "Python" else json.loads)(done.stdout)


def text_of(events):
    """The text of server-sent events."""
    lines = [line for line in events.splitlines() if line.startswith("data: ")]
    return "".join(json.loads(line.removeprefix("data: ")).get("text", "") for line in lines)


def written(page):
    """The code on the screen, by language."""
    page.get_by_text("Code of this request").click()
    page.get_by_role("tab").first.wait_for()
    found = {}
    for tab in page.get_by_role("tab").all():
        tab.click()
        found[tab.inner_text()] = page.get_by_role("tabpanel", name=tab.inner_text()).inner_text()
    return found


@pytest.mark.parametrize("name", ASKED)
def test_each_snippet_answers_as_the_page_does(browser, name, port):
    with opened(browser, f"http://127.0.0.1:{port}/#/{name.replace(' ', '-')}") as page:
        page.get_by_role("heading", name=name.replace(" ", "-"), exact=True).wait_for()
        responses = []
        page.on("response", lambda response: responses.append(response))
        fill(page, name)
        page.wait_for_timeout(800)
        panel(page).locator(".time").filter(has_text="s").wait_for()
        last = [response for response in responses if response.request.method == "POST"][-1]
        streams = last.url.endswith("/stream")
        shown = panel(page).locator(".prose .text")
        expected = (
            shown.text_content().removeprefix("".join(ASKED[name][0].values()))
            if streams
            else last.json()
        )
        snippets = written(page)
    assert [*snippets] == [*COMMANDS]
    for language, code in snippets.items():
        assert answer_of(language, code, streams) == expected, language


def test_beside_a_second_model_the_code_asks_each(browser, folders, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folders["classes"], other)
    with served_page(browser, {"classes": folders["classes"], "other": other}, "#/classes") as page:
        page.get_by_label("Second model").select_option("other")
        page.get_by_label("Text", exact=True).fill("the cat")
        sections = page.locator(".code-section")
        for name, section in zip(("classes", "other"), sections.all(), strict=True):
            section.locator("summary").click()
            section.get_by_role("tabpanel").filter(has_text=f"/v1/bundles/{name}").wait_for()
            code = section.get_by_role("tabpanel").inner_text()
            assert f"/v1/bundles/{name}" in code and "the cat" in code
            assert answer_of("curl", code)["scores"]
        page.get_by_label("Second model").select_option("none")
        assert sections.count() == 1


@pytest.mark.parametrize("name", STRANGE)
def test_any_text_is_sent_as_it_stands(browser, name, folders):
    with served_page(browser, {"classes": folders["classes"]}) as page:
        page.get_by_label("Text", exact=True).fill(STRANGE[name])
        panel(page).locator(".bars").wait_for()
        for language, code in written(page).items():
            assert answer_of(language, code)["input"] == STRANGE[name]
            assert not {"\u202e", "\u2028", "\u200b", "\x7f"} & {*code}


def test_the_token_is_not_shown_and_taken_from_the_environment(browser, folders):
    environment = os.environ | {"SEQKERAS_TOKEN": "se-cret"}
    bundles = {"generator": folders["generator"]}
    with served_page(browser, bundles, token="se-cret", refusals=True) as page:
        page.get_by_label("This server wants a token").fill("se-cret")
        page.get_by_role("button", name="Go on").click()
        page.get_by_label("Prompt").fill("bad")
        page.get_by_text("Options").click()
        for sample in (False, True):
            page.get_by_label("Sample").set_checked(sample)
            page.get_by_label("Seed").fill("7")
            page.get_by_label("Beams").fill("2")
            snippets = written(page)
            assert "se-cret" not in "".join(snippets.values())
            answers = [
                answer_of(language, code, streams=sample, env=environment)
                for language, code in snippets.items()
            ]
            assert answers[0] == answers[1] == answers[2] and answers[0]
            page.get_by_text("Code of this request").click()


def test_tabs_are_reached_by_arrows_and_the_code_is_copied(browser, folders):
    permissions = ["clipboard-read", "clipboard-write"]
    with served_page(browser, {"tags": folders["tags"]}, permissions=permissions) as page:
        page.get_by_label("Text", exact=True).fill("the dogs")
        page.get_by_text("Code of this request").click()
        page.get_by_role("tab", name="curl").focus()
        for key, language in (
            ("ArrowRight", "Python"),
            ("ArrowLeft", "curl"),
            ("ArrowLeft", "JavaScript"),
        ):
            page.keyboard.press(key)
            assert page.locator(":focus").inner_text() == language
            assert page.get_by_role("tab", selected=True).inner_text() == language
        page.get_by_role("button", name="Copy", exact=True).click()
        page.get_by_text("Copied", exact=True).wait_for()
        code = page.evaluate("navigator.clipboard.readText()")
        assert code.strip() == page.get_by_role("tabpanel", name="JavaScript").inner_text().strip()
        page.get_by_label("Text", exact=True).fill("")
        page.get_by_text("Code of this request").wait_for(state="hidden")


@NEEDS_PACKAGES
@pytest.mark.parametrize("name", ["letters", "generator"])
def test_the_code_of_a_static_page_runs_in_node(browser, name, folders, tmp_path):
    (tmp_path / "web").mkdir()
    write_static(tmp_path / "web", [(name, folders[name])], page_of())
    with (
        web_server(tmp_path / "web") as server,
        opened(browser, f"http://127.0.0.1:{server.server_port}/") as page,
    ):
        page.get_by_role("heading", name=name).wait_for()
        fill(page, name)
        snippets = written(page)
        assert [*snippets] == ["JavaScript"]
        streams = "stream(" in snippets["JavaScript"]
        answer = answer_of("JavaScript", snippets["JavaScript"], streams, cwd=PACKAGE)
        expected = serving.load(folders[name], threads=1)(ASKED[name][1]).text
        assert (answer if streams else answer["text"]) == expected and streams == (
            name == "generator"
        )


def test_the_docs_show_the_client_of_the_page(browser, folders):
    docs = (CHECKOUT / "docs" / "server.md").read_text(encoding="utf-8")
    with served_page(browser, {"dates": folders["letters"]}) as page:
        page.get_by_label("Text").fill("bad")
        code = written(page)["Python"]
    start, end = code.split("request = ")[0], code.split("json.dumps(request)")[1]
    assert start in docs and end.strip() in docs
