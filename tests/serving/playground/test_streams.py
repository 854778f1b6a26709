"""A recording that is played back on the page: the stream's answers, live in the browser."""

import re

import numpy as np
import pytest

from seqkeras import serving
from tests.arrays import floats
from tests.serving.playground.chromium import NEEDS_CHROMIUM, NEEDS_PACKAGES, served_page
from tests.serving.test_streams import F

pytestmark = [*NEEDS_CHROMIUM, NEEDS_PACKAGES]
FRAMES = np.round(floats(40, F, seed=2), 3)
PICTURE = "canvas => canvas.toDataURL()"


def csv(frames, header=""):
    return "".join(
        [f"{header}\n" if header else "", *(f"{','.join(map(str, row))}\n" for row in frames)]
    )


def stream(page):
    return page.get_by_role("region", name="Stream")


def choose(page, content):
    file = {"name": "sensor.csv", "mimeType": "text/csv", "buffer": content.encode()}
    stream(page).get_by_label("Recording, as CSV").set_input_files(file)


def played(page, content, speed="1000"):
    """Choose a recording and play it."""
    choose(page, content)
    stream(page).get_by_label("Frames a second").select_option(speed)
    stream(page).get_by_role("button", name="Play").click()


def last_answer(bundle, rows):
    answer = serving.load(bundle, threads=1).open().push(rows)[-1]
    return f"{getattr(answer, 'tag', None) or answer.labels[0]}, {100 * answer.score:.3g} %"


@pytest.mark.parametrize("name", ["Classify", "Tag", "rows"])
def test_a_recording_is_answered_frame_by_frame_as_python_does(name, browser, stream_bundles):
    header = "z,time,x,y" if name == "rows" else ""
    frames = [[z, "noon", x, y] for x, y, z in FRAMES] if header else FRAMES
    given = [dict(zip("xyz", row)) for row in FRAMES] if header else FRAMES
    with served_page(browser, stream_bundles, f"#/{name}") as page:
        before = stream(page).locator("canvas").evaluate(PICTURE)
        played(page, csv(frames, header))
        stream(page).get_by_text("40 frames · ").wait_for()
        said = stream(page).get_by_role("status")
        assert said.inner_text() == last_answer(stream_bundles[name], given)
        time = stream(page).locator(".time").inner_text()
        assert re.fullmatch(r"40 frames · [\d,]+ µs a frame · state of 12 bytes", time)
        assert stream(page).locator("canvas").evaluate(PICTURE) != before
        stream(page).get_by_role("button", name="Restart").click()
        stream(page).get_by_role("button", name="Step").click()
        stream(page).get_by_text("1 frame · ").wait_for()
        assert said.inner_text() == last_answer(stream_bundles[name], given[:1])


def test_a_stream_begins_with_each_series(browser, stream_bundles):
    machines = ["a"] * 18 + ["b"] * 22
    lines = csv([[*frame, name] for frame, name in zip(FRAMES, machines)], "x,y,z,machine")
    with served_page(browser, stream_bundles, "#/rows") as page:
        played(page, lines)
        stream(page).get_by_text("40 frames · ").wait_for()
        said = stream(page).get_by_role("status").inner_text()
        of_last = [dict(zip("xyz", row)) for row in FRAMES[18:]]
        assert said == last_answer(stream_bundles["rows"], of_last)
        assert stream(page).get_by_role("alert").count() == 0


def test_it_pauses_and_goes_on(browser, stream_bundles):
    with served_page(browser, stream_bundles, "#/Classify") as page:
        played(page, csv(FRAMES), "10")
        stream(page).get_by_text(re.compile("^[3-9] frames · ")).wait_for()
        stream(page).get_by_role("button", name="Pause").click()
        page.wait_for_timeout(300)
        paused = stream(page).locator(".time").inner_text()
        page.wait_for_timeout(500)
        assert stream(page).locator(".time").inner_text() == paused
        stream(page).get_by_label("Frames a second").select_option("1000")
        stream(page).get_by_role("button", name="Play").click()
        stream(page).get_by_text("40 frames · ").wait_for()
        said = stream(page).get_by_role("status").inner_text()
        assert said == last_answer(stream_bundles["Classify"], FRAMES)


def test_a_bad_row_is_told_and_left_out(browser, stream_bundles):
    lines = csv(FRAMES).splitlines()
    lines[20] = "1,2"
    with served_page(browser, stream_bundles, "#/Classify") as page:
        played(page, "\n".join(lines))
        stream(page).get_by_text("39 frames · ").wait_for()
        problem = stream(page).get_by_role("alert").inner_text()
        assert problem.startswith("Classify: frames must have shape (frames, 3)")
        rest = np.delete(FRAMES, 20, axis=0)
        said = stream(page).get_by_role("status").inner_text()
        assert said == last_answer(stream_bundles["Classify"], rest)
        choose(page, "\n\n")
        stream(page).get_by_text("the recording has no frame").wait_for()
        assert stream(page).get_by_role("button", name="Play").is_disabled()


def test_the_accelerometer_is_heard_in_the_order_of_the_model(browser, stream_bundles):
    moved = """([x, y, z]) => window.dispatchEvent(new DeviceMotionEvent("devicemotion", {
        accelerationIncludingGravity: { x, y, z },
    }))"""
    with served_page(browser, stream_bundles, "#/rows") as page:
        choose(page, csv(FRAMES, "x,y,z"))
        button = stream(page).get_by_role("button", name="Accelerometer")
        button.click()
        stream(page).get_by_role("button", name="Stop the accelerometer").wait_for()
        assert stream(page).get_by_role("button", name="Play").is_disabled()
        page.evaluate(moved, FRAMES[0].tolist())
        stream(page).get_by_text("1 frame · ").wait_for()
        said = stream(page).get_by_role("status").inner_text()
        assert said == last_answer(stream_bundles["rows"], [dict(zip("xyz", FRAMES[0]))])
        button.click()
        stream(page).get_by_role("button", name="Play").and_(page.locator(":enabled")).wait_for()
        page.evaluate(moved, FRAMES[1].tolist())
        page.wait_for_timeout(300)
        assert stream(page).locator(".time").inner_text().startswith("1 frame · ")


def test_forecasts_of_rows_are_those_of_python(browser, stream_bundles):
    rows = [{"load": load, "kind": kind} for load, kind in (("2.5", "a"), ("", "b"), ("3", "a"))]
    with served_page(browser, stream_bundles, "#/Forecast") as page:
        played(page, csv([row.values() for row in rows], "load,kind"))
        stream(page).get_by_text("3 frames · ").wait_for()
        said = stream(page).get_by_role("status").inner_text().removeprefix("next: ")
        answer = serving.load(stream_bundles["Forecast"], threads=1).open().push(rows)[-1]
        actual = [float(number) for number in said.split(", ")]
        np.testing.assert_allclose(actual, answer.values[0], rtol=1e-2)
        assert stream(page).get_by_text("dashed: the forecast").is_visible()


def test_a_bundle_without_a_stream_has_no_section(browser, bundle):
    with served_page(browser, {"letters": bundle}) as page:
        page.get_by_role("heading", name="letters").wait_for()
        assert not stream(page).count()
