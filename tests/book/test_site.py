"""The book in a browser, as its readers have it: desk and phone, day and night."""

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import needs
import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebooks import cleaned, text_of
from playwright.sync_api import Page, expect, sync_playwright

BOOK = Path(__file__).parents[2] / "book"
TOC = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))


def files(chapter):
    """A chapter and what belongs to it, in reading order."""
    yield chapter["file"]
    for section in chapter.get("sections", []):
        yield from files(section)


CHAPTERS = [chapter for part in TOC["parts"] for chapter in part["chapters"]]
NAMES = [TOC["root"], *(name for chapter in CHAPTERS for name in files(chapter))]
# Quiet, so that every request is one that a page makes.
OPTIONS = (
    "--disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PATIENCE = 300_000  # milliseconds: a busy machine is no fault of the book
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

TYPESET = "() => window.MathJax && MathJax.startup.promise.then(() => null)"
MATH = """() => ({
    wanted: document.querySelectorAll(".math").length,
    typeset: document.querySelectorAll(".math mjx-container").length,
    errors: document.querySelectorAll("mjx-merror").length,
})"""
# What a reader would see of TeX that nobody typeset: not code, which may hold dollars.
PROSE = """() => {
    const article = document.querySelector("article").cloneNode(true);
    article.querySelectorAll("pre, code, script, mjx-container")
        .forEach(e => e.remove());
    return article.textContent;
}"""
RAW_TEX = re.compile(r"\$\$?[^$\n]*[\\_^{][^$\n]*\$|\\[(\[]|\\[a-z]+[{_^]")
# Elements right of the screen, but for those inside a box that scrolls by itself.
STICKING_OUT = """() => {
    const boxed = e => {
        for (; e && e !== document.body; e = e.parentElement) {
            const { position, overflowX } = getComputedStyle(e);
            if (position === "fixed" || overflowX !== "visible") return true;
        }
        return false;
    };
    return [...document.querySelectorAll("body *")]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !boxed(e))
        .map(e => e.outerHTML.slice(0, 120));
}"""
# Of thousands of words of code, axe need see only one of each colour and background,
# and of formulas, which are all in one colour, none: minutes become seconds.
THIN = """thin => {
    const seen = new Set();
    for (const word of document.querySelectorAll("article pre span, mjx-container")) {
        const box = word.closest(".cell_input, .cell_output, .highlight");
        const kind = [word, word.parentElement, box].map(e => e?.className).join("/");
        const again = seen.has(kind) || word.matches("mjx-container");
        word.style.display = thin && again ? "none" : "";
        seen.add(kind);
    }
}"""
IMAGES = """() => [...document.querySelectorAll("article img")].map(i => ({
    alt: i.alt, width: i.naturalWidth, name: i.src.split("/").pop(),
}))"""


@dataclass
class Visit:
    """An open page, with what it complained of and what it asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self):
        page, complain = self.page, self.complaints.append
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complain(str(error)))
        page.on("requestfailed", lambda request: complain(f"failed: {request.url}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on(
            "console",
            lambda message: (
                complain(message.text) if message.type in ("error", "warning") else None
            ),
        )

    def go(self, address):
        """Load an address and wait until its formulas are typeset."""
        self.page.goto(address)
        self.page.evaluate(TYPESET)

    def foreign(self, *homes):
        """The requests that left home."""
        return [url for url in self.requests if not url.startswith((*homes, "data:"))]

    def violations(self, *rules):
        """What axe, a checker of accessibility, finds serious or critical."""
        # It shall fetch nothing itself, which a page on a disk may not do.
        options = {"resultTypes": ["violations"], "preload": False}
        if rules:
            options["runOnly"] = rules
        self.page.evaluate(THIN, True)
        found = Axe().run(self.page, options=options).response["violations"]
        self.page.evaluate(THIN, False)
        return [
            f"{v['id']}: {node['target']} {node['failureSummary']}"
            for v in found
            if v["impact"] in ("serious", "critical")
            for node in v["nodes"]
        ]


@pytest.fixture(scope="module")
def context():
    """A browser with an empty profile, its pages as wide as a desk allows."""
    program = needs.browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=OPTIONS,
            chromium_sandbox=False,
            timeout=PATIENCE,
        )
        yield browser.new_context(viewport=DESK, color_scheme="light")
        browser.close()


@pytest.fixture(scope="module")
def server(site):
    """The address of the site, served as a web host would."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def visit(context, server, name):
    """A page of the book, loaded once for all that is asked of it."""
    visit = Visit(context.new_page())
    visit.go(f"{server}/{name}.html")
    yield visit
    visit.page.close()


@pytest.fixture
def fresh(context):
    """A page of its own, for a test that clicks."""
    visit = Visit(context.new_page())
    yield visit
    visit.page.close()


def prose_of(name):
    """The text of a page's source, without its code."""
    path = BOOK / f"{name}.ipynb"
    if path.exists():
        cells = nbformat.read(path, as_version=4).cells
        text = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    else:
        text = path.with_suffix(".md").read_text(encoding="utf-8")
    return re.sub(r"(?ms)^```\w+\n.*?^```|`[^`\n]+`", "", text)


def test_a_page_loads_in_silence_and_from_home(visit, server):
    assert visit.complaints == []
    assert visit.foreign(server) == []
    assert len(visit.requests) > 10  # or nothing was recorded


def test_math_is_typeset(visit, name):
    math = visit.page.evaluate(MATH)
    assert math["wanted"] == math["typeset"]
    assert math["errors"] == 0
    assert bool(math["wanted"]) == bool(re.search(r"\$[^$\n]+\$", prose_of(name)))
    assert RAW_TEX.findall(visit.page.evaluate(PROSE)) == []


def test_images_are_there_and_say_what_they_show(visit):
    for image in visit.page.evaluate(IMAGES):
        assert image["width"] > 0, f"{image['name']} is not shown"
        assert len(image["alt"].split()) >= 5, f"{image['name']}: {image['alt']!r}"


def test_code_can_be_copied(visit):
    page = visit.page
    blocks = page.locator("article div.highlight:has(pre)")
    assert page.locator("article div.highlight button.copybtn").count() == (
        blocks.count()
    )


def test_by_day_axe_finds_nothing_serious(visit):
    assert visit.violations() == []


def test_by_night_axe_finds_nothing_serious(visit):
    # colours that are still changing from day to night are neither's
    visit.page.add_style_tag(content="* { transition: none !important }")
    visit.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    found = visit.violations("color-contrast")
    visit.page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert found == []


def test_on_a_phone_nothing_sticks_out(visit):
    visit.page.set_viewport_size(PHONE)
    width = visit.page.evaluate("document.documentElement.scrollWidth")
    found = visit.page.evaluate(STICKING_OUT)
    visit.page.set_viewport_size(DESK)
    assert found == []
    assert width <= PHONE["width"]


def test_what_is_folded_opens(visit):
    for fold in visit.page.locator("article details").all():
        assert fold.get_attribute("open") is None
        fold.locator("summary").first.click()
        assert fold.get_attribute("open") is not None


@pytest.fixture(scope="module")
def disk(site, tmp_path_factory):
    """The folder of a reader who took the zip along."""
    folder = tmp_path_factory.mktemp("offline")
    with zipfile.ZipFile(site / "site.zip") as packed:
        packed.extractall(folder)
    return folder / "html"


def test_a_page_reads_the_same_from_a_disk(fresh, disk, name):
    fresh.go((disk / f"{name}.html").as_uri())
    math = fresh.page.evaluate(MATH)
    assert math["wanted"] == math["typeset"]
    assert all(image["width"] for image in fresh.page.evaluate(IMAGES))
    assert not fresh.page.locator(".online-only").is_visible()
    assert fresh.complaints == []
    assert fresh.foreign(disk.as_uri()) == []


def test_the_zip_holds_the_whole_site(site, disk):
    here = {path.relative_to(site) for path in site.rglob("*") if path.is_file()}
    there = {path.relative_to(disk) for path in disk.rglob("*") if path.is_file()}
    assert here - there == {Path("site.zip")}
    assert there <= here


@pytest.mark.parametrize("home", ["server", "disk"])
def test_search_finds_beam(fresh, request, home):
    home = request.getfixturevalue(home)
    start = home if isinstance(home, str) else home.as_uri()
    page = fresh.page
    fresh.go(f"{start}/{TOC['root']}.html")
    page.locator("button.search-button__button:visible").first.click()
    page.locator("dialog input[name=q]").fill("beam")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{start}/search.html?q=beam*")
    found = page.locator("#search-results li a")
    found.filter(has_text="Beam search").first.wait_for()
    if home == start:  # a web server also lets it quote the page
        page.locator("#search-results p.context").first.wait_for()
    assert fresh.violations() == []
    assert fresh.complaints == []
    assert fresh.foreign(start) == []


def test_the_address_of_the_site_leads_to_its_first_page(fresh, server):
    fresh.page.goto(f"{server}/")
    fresh.page.wait_for_url(f"{server}/{TOC['root']}.html")


def test_night_falls_at_a_click_and_stays(fresh, server):
    fresh.go(f"{server}/faq.html")
    page = fresh.page

    def background():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert background() == "rgb(255, 255, 255)"
    switch = page.locator("button.theme-switch-button").first
    for _ in range(3):  # it goes around: as the system has it, light, dark
        if page.evaluate("document.documentElement.dataset.theme") != "dark":
            switch.click()
    assert max(map(int, re.findall(r"\d+", background()))) < 64
    fresh.go(f"{server}/glossary.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("localStorage.clear()")


def test_a_click_copies_code(fresh, server, context):
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    fresh.go(f"{server}/{TOC['root']}.html")
    block = fresh.page.locator("article div.highlight:visible").first
    block.hover()
    block.locator("button.copybtn").click()
    code = fresh.page.evaluate("navigator.clipboard.readText()")
    assert code.strip() == block.locator("pre").inner_text().strip()


CARD = """\
<div class="predict">

**Predict first.** Which letter of `knight` makes $t_2$?

<details><summary>Answer</summary>

The vowel, `i`.

</details>

</div>"""
LONG = "Draw the weights of every head in the last layer of the decoder, side by side"
FOLDS = {
    "Show: Draw the weights": ("# @title Draw the weights", ["hide-input"]),
    "Show the output": ('print("of six")', ["hide-output"]),
    f"Show the source: {LONG}": (f"# @title {LONG}", ["hide-input", "hide-output"]),
    "Show the code": ("assert True", ["hide-input"]),  # of older pages, without a title
}


@pytest.fixture(scope="module")
def folds(tmp_path_factory):
    """The address of a page with all kinds of folds, in a book made as the real one."""
    book = tmp_path_factory.mktemp("sample") / "book"
    for folder in ("_static", "_templates", "_extensions"):
        shutil.copytree(BOOK / folder, book / folder)
    shutil.copy(BOOK / "_config.yml", book)
    (book / "_toc.yml").write_text("format: jb-book\nroot: folds\n", encoding="utf-8")
    cells = [new_markdown_cell("# 1 Folds"), new_markdown_cell(CARD)]
    for source, tags in FOLDS.values():
        outputs = [new_output("stream", text="i, the third\n")]
        cells.append(new_code_cell(source, outputs=outputs, metadata={"tags": tags}))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    text = text_of(cleaned(new_notebook(cells=cells)))
    (book / "folds.ipynb").write_text(text, encoding="utf-8")
    program = Path(sys.executable).with_name("jupyter-book")
    built = subprocess.run(
        [program, "build", book, "--quiet", "-W", "-n", "--keep-going"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return (book / "_build" / "html" / "folds.html").as_uri()


@pytest.mark.parametrize("press", ["click", "Enter", "Space"])
@pytest.mark.parametrize("title", FOLDS)
def test_a_fold_shows_its_title_and_opens(fresh, folds, title, press):
    fresh.go(folds)
    named = fresh.page.get_by_text(title, exact=True)
    fold = fresh.page.locator("details.hide", has=named)
    button, inside = fold.locator("summary"), fold.locator("pre")
    expect(button).to_have_text(title, use_inner_text=True)
    expect(button).to_have_accessible_name(title)
    for opened in (True, False):
        expect(inside).to_be_visible(visible=not opened)
        button.click() if press == "click" else button.press(press)
        expect(inside).to_be_visible(visible=opened)
        word = "Hide" if opened else "Show"
        expect(button).to_have_text(f"{word}{title[4:]}", use_inner_text=True)


def test_a_card_keeps_its_answer_and_the_next_output_closed(fresh, folds):
    fresh.go(folds)
    card = fresh.page.locator("div.predict")
    expect(card.locator("p").first).to_contain_text("Predict first. Which letter")
    answer = card.get_by_text("The vowel, i.")
    result = fresh.page.locator("details.below-input").first
    expect(answer).to_be_hidden()
    expect(result.get_by_text("i, the third")).to_be_hidden()
    expect(fresh.page.get_by_text('print("of six")')).to_be_visible()
    card.locator("summary").click()
    expect(answer).to_be_visible()
    expect(result.get_by_text("i, the third")).to_be_hidden()
    result.locator("summary").press("Enter")
    expect(result.get_by_text("i, the third")).to_be_visible()


@pytest.mark.parametrize("size", [DESK, PHONE, {"width": 374, "height": 700}])
def test_folds_and_cards_look_well(fresh, folds, size):
    fresh.page.set_viewport_size(size)
    fresh.go(folds)
    still = "* { transition: none !important; animation: none !important }"
    fresh.page.add_style_tag(content=still)
    for fold in fresh.page.locator("details.hide").all():
        title = fold.locator("summary p:visible")
        inside = title.bounding_box()["x"] - fold.bounding_box()["x"]
        assert inside > 18  # the triangle stands there, right of the border
    for _ in ("closed", "open"):
        for theme in ("light", "dark"):
            page = fresh.page
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            assert fresh.violations() == []
            assert page.evaluate(STICKING_OUT) == []
        page.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
    assert fresh.complaints == []
