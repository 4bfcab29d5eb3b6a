"""Reports in a real browser: scripts run, and pages fit narrow and wide windows."""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from nuptse import KernelClassifier
from nuptse.datasets import make_taxonomy
from nuptse.report import make_report
from test_report import Oracle, hostile_report

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Windows narrower than 500 pixels do not exist on desktops, so pages are tried within frames.
FRAMES = """<!doctype html><body>{frames}<pre id="found"></pre><script>
const look = async (frame) => {{
  const page = frame.contentWindow, root = page.document.documentElement;
  const all = (selector) => page.document.querySelectorAll(selector);
  const press = (key) => page.document.activeElement.dispatchEvent(
    new page.KeyboardEvent("keydown", {{key, bubbles: true, cancelable: true}}));
  const state = () => ({{crumbs: all(".crumbs li").length, bars: all("[data-bar]").length,
    details: all(".details")[0]?.textContent, focused: page.document.activeElement.getAttribute("aria-label")}});
  const found = {{width: root.clientWidth, needed: root.scrollWidth, drawn: all("#icicle")[0]?.dataset.drawn,
    images: all("img").length, scripts: all("script").length, start: state()}};
  if (found.drawn) {{
    all("[data-bar].inner")[1].dispatchEvent(new page.MouseEvent("click", {{bubbles: true}}));
    found.zoomed = state();
    press("ArrowDown");
    found.moved = state();
    press("Escape");
    found.back = state();
    press("Enter");
    found.stayed = state();
    found.afterwards = root.scrollWidth;
  }}
  return found;
}};
addEventListener("load", async () => {{
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) found.push(await look(frame));
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a function that opens a page at several widths, and tells what it found."""
    program = os.environ.get("NUPTSE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)} is there, and NUPTSE_CHROMIUM is not set")
    folder = tmp_path_factory.mktemp("browser")

    def look(content, widths=(390, 1280), scheme="light"):
        (folder / "page.html").write_text(content, encoding="utf-8")
        frames = "".join(f'<iframe src="page.html" width="{width}" height="900"></iframe>' for width in widths)
        (folder / "frames.html").write_text(FRAMES.format(frames=frames), encoding="utf-8")
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            "--window-size=1400,1000",
            f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            (folder / "frames.html").as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert not console
        return json.loads(re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL).group(1))

    return look


@pytest.fixture(scope="module")
def tree_report():
    documents = make_taxonomy(500, n_classes=40, n_words=400, words_per_document=25, topic_share=0.4, random_state=0)
    clf = KernelClassifier("linear", hierarchy=documents.hierarchy, scale="auto", learn=False)
    clf.fit(documents.data[:200], documents.target[:200])
    return clf.report(documents.data[200:], documents.target[200:])


def test_pages_fit_the_window_and_can_be_zoomed(browser, tree_report):
    for found in browser(tree_report.html):
        assert found["drawn"] == "true"
        assert found["needed"] <= found["width"]
        assert found["afterwards"] <= found["width"]
        start, zoomed, moved, back, stayed = (found[name] for name in ("start", "zoomed", "moved", "back", "stayed"))
        assert start["crumbs"] == back["crumbs"] == stayed["crumbs"] == 1
        assert start["bars"] == back["bars"] > zoomed["bars"] > 1
        assert zoomed["crumbs"] == 2
        assert start["details"].startswith("All points300 points")
        # Keys move what is in focus, which is named for those who do not see it.
        assert "placed elsewhere" in zoomed["focused"]
        assert "placed elsewhere" in moved["focused"] != zoomed["focused"]
        assert back["focused"] == "All points: 300 points"


def test_flat_classes_fit_the_window(browser, rng):
    X = rng.normal(size=(120, 2))
    y = np.array([f"a class with the rather long name {i}" for i in range(20)])[np.arange(120) % 20]
    clf = KernelClassifier(learn=False).fit(X, y)
    for found in browser(clf.report(X, y, documents=["x" * 700] * 120).html):
        assert found["needed"] <= found["width"]


def test_hostile_labels_run_nothing(browser):
    _, _, report = hostile_report()
    for scheme in ("light", "dark"):
        for found in browser(report.html, scheme=scheme):
            assert found["drawn"] == "true"
            assert found["needed"] <= found["width"]
            assert found["images"] == 0
            assert found["scripts"] == 2


def test_thousands_of_classes_can_be_looked_at(browser):
    documents = make_taxonomy(6000, n_classes=3000, n_words=50, words_per_document=1, random_state=0)
    y = documents.target[:3000]
    clf = Oracle(documents.hierarchy)
    clf.says = np.where(np.arange(3000) % 3, y, np.roll(y, 1)).tolist()
    report = make_report(clf, np.zeros((3000, 1)), y)
    (found,) = browser(report.html, widths=(1280,))
    assert found["drawn"] == "true"
    # Bars that are too narrow to be seen are drawn as one.
    assert 100 < found["start"]["bars"] < 1500
    assert found["zoomed"]["crumbs"] == 2
