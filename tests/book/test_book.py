"""The built book: strict, complete, and readable without a network."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup
from pages import notebooks, page_name

BOOK = Path(__file__).parents[2] / "book"
CONFIG = yaml.safe_load((BOOK / "_config.yml").read_text(encoding="utf-8"))
TOC = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))


def files(chapter):
    """A chapter and what stands below it in the contents."""
    yield chapter["file"]
    for section in chapter.get("sections", []):
        yield from files(section)


CHAPTERS = [chapter for part in TOC["parts"] for chapter in part["chapters"]]
NAMES = [TOC["root"], *(name for chapter in CHAPTERS for name in files(chapter))]
NOTEBOOKS = [page_name(path) for path in notebooks()]
# What a browser fetches by itself; links that a reader may follow are not among them.
FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "input": "src",
    "object": "data",
    "link": "href",
}
FOLLOWED = {"canonical", "next", "prev", "search", "author", "license"}


@pytest.fixture(scope="session")
def pages(site):
    """Every page of the site, parsed, by its name."""
    return {
        path.relative_to(site).as_posix(): BeautifulSoup(
            path.read_text(encoding="utf-8"), "html.parser"
        )
        for path in site.rglob("*.html")
    }


def is_foreign(address):
    return bool(re.match(r"(https?:)?//", address.strip()))


def test_every_page_is_in_the_book(pages):
    written = [
        page_name(path) for path in BOOK.rglob("*.md") if "_build" not in path.parts
    ]
    assert sorted([*written, *NOTEBOOKS]) == sorted(NAMES)
    expected = {f"{name}.html" for name in (*NAMES, "index", "search")}
    assert expected <= pages.keys()


def test_no_page_asks_another_host(pages):
    foreign = [
        (name, tag[FETCHED[tag.name]])
        for name, page in pages.items()
        for tag in page.find_all(list(FETCHED))
        if is_foreign(tag.get(FETCHED[tag.name], ""))
        and not FOLLOWED.intersection(tag.get("rel", []))
    ]
    assert foreign == []


def test_no_style_asks_another_host(site, pages):
    styles = {path.name: path.read_text("utf-8") for path in site.rglob("*.css")}
    for name, page in pages.items():
        styles[name] = " ".join(
            [
                *(tag.text for tag in page("style")),
                *(t["style"] for t in page(style=True)),
            ]
        )
    addresses = r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)"
    assert {
        n: found for n, s in styles.items() if (found := re.findall(addresses, s))
    } == {}


def test_no_script_in_a_page_names_another_host(pages):
    for name, page in pages.items():
        for script in page("script", src=False):
            assert not re.search(r"[\"'`](?:https?:)?//\w", script.text), name


def test_every_image_says_what_it_shows(pages):
    images = [
        (name, img.get("alt", ""))
        for name, page in pages.items()
        for img in page.select("article img")
    ]
    assert images
    for name, alt in images:
        assert alt.strip(), f"an image in {name} has no alt text"
        assert not re.fullmatch(r"\S+\.(png|svg|jpe?g|gif)", alt.strip()), (name, alt)


def test_internal_links_lead_somewhere(site, pages):
    anchors = {
        name: {tag["id"] for tag in page(id=True)} for name, page in pages.items()
    }
    broken, links = [], 0
    for name, page in pages.items():
        for link in page("a", href=True):
            target = urlsplit(link["href"])
            if target.scheme or target.netloc:
                continue
            links += 1
            path = (
                (site / name).parent / unquote(target.path)
                if target.path
                else site / name
            )
            place = path.resolve().relative_to(site.resolve()).as_posix()
            fragment = unquote(target.fragment)
            if not path.exists() or (
                place in pages and fragment and fragment not in anchors[place]
            ):
                broken.append((name, link["href"]))
    assert links > 10
    assert broken == []


def test_math_is_typeset_by_the_site_itself(site, pages):
    with_math = {n: p for n, p in pages.items() if p.select(".math")}
    assert with_math
    for name, page in with_math.items():
        (script,) = (
            s["src"] for s in page("script", src=True) if "mathjax" in s["src"]
        )
        path = (site / name).parent / urlsplit(script).path
        assert path.exists()
        assert list(path.parent.glob("output/chtml/fonts/woff-v2/*.woff"))


def test_the_search_index_knows_the_chapters(site, pages):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    for name in NAMES:
        assert f'"{name}"' in index
    for script in ("searchtools.js", "language_data.js", "doctools.js"):
        assert (site / "_static" / script).exists()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_chapter_opens_where_readers_are(pages, name):
    page = pages[f"{name}.html"]
    links = {link["href"] for link in page("a", href=True)}
    url, branch = CONFIG["repository"]["url"], CONFIG["repository"]["branch"]
    path = url.removeprefix("https://github.com/")
    colab = f"https://colab.research.google.com/github/{path}/blob/{branch}"
    assert f"{colab}/book/{name}.ipynb" in links
    assert any(
        link.startswith(f"https://mybinder.org/v2/gh/{path}/{branch}?")
        and link.endswith(f"{name}.ipynb")
        for link in links
    )
    assert page.select("button.theme-switch-button")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_set_up_cell_is_not_shown(pages, name):
    assert "SEQ2SEQ_SOURCE" not in pages[f"{name}.html"].text
