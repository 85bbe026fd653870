#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of `polyad cpd --report` in headless Chromium: it opens without errors and without the network, its charts are
drawn, its search finds, hostile labels stay text, and it fits a phone, paper and the dark."""

import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from browser import CHROMIUM, Browser
from harness import WORK, check, equal, finish, folder, run

RANK = 5
PLACES = [b"</script><script>window.hacked = 1</script>", b"<img src=x onerror='window.hacked = 2'>",
          b'"><svg onload="window.hacked = 3">', b"' onmouseover='window.hacked = 4", b"<!-- a comment", b"\xff\xfe no UTF-8",
          "two\u2028lines".encode(), b"\\u003cb\\u003e", "Curaçao".encode(), b"an uncommonly long name " * 12,
          b"https://example.org/a/long/path/that/has/no/blanks/" + b"x" * 60, b"plain"]
MODE = "<p id='x'>hostile mode"  # the name of a mode comes from the name of a file


def make_tensor():
    """words x years x places x months: RANK groups of words, each with years and places of its own, and a background that
    gives every word some weight everywhere."""
    tensor = folder("tensor")
    months = ["Apr", "Aug", "Dec", "Feb", "Jan", "Jul", "Jun", "Mar", "May", "Nov", "Oct", "Sep"]
    labels = {"1-word": [f"word{i:02}".encode() for i in range(80)],
              "2-year": [str(1500 + i).encode() for i in range(500)],
              "3-" + MODE: PLACES,
              "4-month": [m.encode() for m in months]}
    for name, lines in labels.items():
        (tensor / f"mode-{name}.map").write_bytes(b"\n".join(lines) + b"\n")
    rows = []
    for word in range(80):
        group = word % RANK
        for year in range(word % 7, 500, 7):
            place = (group * 2 + year % 2) % len(PLACES)
            month = (year + group) % 12
            value = (1 + word / 40) * (30 if year // 100 == group else 1) / (1 + word // RANK)
            rows.append(f"{word + 1} {year + 1} {place + 1} {month + 1} {value:.4f}")
            rows.append(f"{word + 1} {year + 1} {(place + 5) % len(PLACES) + 1} {month + 1} {value / 9:.4f}")
    (tensor / "x.tns").write_text("\n".join(rows) + "\n")
    return tensor / "x.tns"


def make_report(tensor):
    r = run("cpd", tensor, "--rank", RANK, "--iters", 10, "--report", "r.html", "--quiet")
    if not check(r.code == 0 and (WORK / "r.html").exists(), "cpd --report", r):
        finish()
    return WORK / "r.html"


class Report:
    """A report in a tab, with what its JSON says."""

    def __init__(self, browser, path, **size):
        self.url = pathlib.Path(path).as_uri()
        self.page = browser.open(self.url, **size)
        self.data = json.loads(self.page.value("document.getElementById('data').textContent"))
        self.rank = len(self.data["weights"])
        self.page.value("document.documentElement.style.scrollBehavior = 'auto'")
        # Functions of the tests; the page's own are out of reach.
        self.page.value("""
          window.canvases = [...document.querySelectorAll('.chart canvas')];
          window.chartOf = (r, m) => document.querySelector(`canvas[data-component="${r}"][data-mode="${m}"]`);
          window.inked = (canvas) => {
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
            copy.drawImage(canvas, 0, 0);
            const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
            let count = 0;
            for (let i = 3; i < pixels.length; i += 4) count += pixels[i] > 0;
            return count;
          };
          window.inView = (e) => { const b = e.getBoundingClientRect(); return b.bottom > 0 && b.top < innerHeight; };
          0""")

    def label(self, mode, index):
        m = self.data["modes"][mode]
        return str(index + 1) if "labels" not in m else m["labels"][m["ids"].index(index) if "ids" in m else index]

    def text(self, selector):
        return self.page.value(f"document.querySelector({json.dumps(selector)}).textContent")

    def search(self, text):
        self.page.value("(() => { const s = document.getElementById('search'); s.focus(); s.select(); })()")
        self.page.type(text)
        self.page.frames()

    def results(self):
        """(label, mode, [hits]) as listed."""
        return self.page.value("""[...document.querySelectorAll('#search-results .result')].filter((e) => e.querySelector('b'))
          .map((e) => [e.querySelector('b').textContent, e.querySelector('.about').textContent,
                       [...e.querySelectorAll('a')].map((a) => a.textContent)])""")

    def marked(self):
        return self.page.value("[...document.querySelectorAll('.component.match')].map((e) => Number(e.id.slice(10)))")

    def clean(self, name):
        """No error, no request and no dialog so far."""
        equal(self.page.errors, [], f"{name}: errors")
        equal([u for u in self.page.requests if u != self.url and not u.startswith("data:")], [], f"{name}: requests")
        equal(self.page.dialogs, [], f"{name}: dialogs")


def test_opens(report):
    page = report.page
    report.clean("opened")
    equal(page.value("[...document.querySelectorAll('.component')].map((e) => e.id)"),
          [f"component-{k + 1}" for k in range(report.rank)], "panels")
    equal(page.value("document.querySelectorAll('.component canvas').length"), report.rank * len(report.data["modes"]),
          "charts")
    check(page.value("document.querySelectorAll('#run tr').length") >= 3, "the table of the run")
    check(re.search(r"rank 5 .* fit 0\.\d{4} after \d+ iterations in \d", report.text(".summary")), "the summary",
          report.text(".summary"))
    equal([m["line"] for m in report.data["modes"]], [False, True, False, True], "lines")
    check(0 < page.value("Object.keys(Chart.instances).length") < page.value("canvases.length"),
          "charts far away wait until they are near")


def test_accessible(report):
    page = report.page
    levels = page.value("[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((e) => Number(e.tagName[1]))")
    check(levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])),
          "headings in order", levels)
    equal(page.value("canvases.filter((c) => c.getAttribute('role') !== 'img' || !(c.ariaLabel || '').trim()).length"), 0,
          "every chart has a role and a label")
    equal(page.value("[...document.querySelectorAll('[id]')].length"),
          page.value("new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size"), "no id twice")
    for scheme in ("light", "dark"):
        page.prefer(color_scheme=scheme)
        for text in ("ink", "muted", "link", "mark"):
            for back in ("paper", "card"):
                ratio = contrast(page, text, back)
                check(ratio >= 4.5, f"contrast of {text} on {back}, {scheme}", ratio)
        for k in range(6):
            ratio = contrast(page, f"mode-{k}", "card")
            check(ratio >= 3, f"contrast of colour {k} on the card, {scheme}", ratio)
    page.prefer(color_scheme="light")


def contrast(page, a, b):
    """WCAG's ratio of two of the page's colours."""
    def luminance(name):
        text = page.value(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        parts = [int(text[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_keyboard(report):
    page = report.page
    page.value("(document.activeElement?.blur(), scrollTo(0, 0))")
    page.key("Tab", number=9)
    equal(page.value("document.activeElement.className"), "skip", "Tab reaches the link to the components first")
    page.key("Tab", number=9)
    equal(page.value("document.activeElement.id"), "search", "then the search")
    page.value(f"document.querySelector('nav a[href=\"#component-{report.rank}\"]').focus()")
    page.key("Enter", number=13)
    page.frames(4)
    check(page.value(f"inView(document.getElementById('component-{report.rank}'))"), "Enter on a number goes to its panel")


def test_charts_are_drawn(report):
    """Every chart has pixels in the colour of its mode once it is in view."""
    page = report.page
    empty = []
    for k in range(page.value("canvases.length")):
        page.value(f"canvases[{k}].scrollIntoView({{block: 'center'}})")
        page.frames(2)
        if page.value(f"Chart.getChart(canvases[{k}]) ? inked(canvases[{k}]) : 0") < 500:
            empty.append(page.value(f"canvases[{k}].ariaLabel"))
    equal(empty, [], "charts without pixels")
    instances = page.value("Object.keys(Chart.instances).length")
    check(instances <= page.value("canvases.length"), "one chart per canvas", instances)
    # A line has all its points up to 400, and less than the 500 years beyond.
    page.value("chartOf(0, 1).scrollIntoView()")
    page.frames(4)
    points = page.value("Chart.getChart(chartOf(0, 1)).data.datasets[0].data.length")
    check(200 <= points <= 402, "a long line is thinned out", points)
    order = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    indices = page.value("Chart.getChart(chartOf(0, 3)).data.datasets[0].data.map((p) => p.index)")
    equal([report.label(3, i) for i in indices], order, "months are in the order of the year")
    ticks = page.value("Chart.getChart(chartOf(0, 3)).scales.x.ticks.map((t) => [t.value, t.label]).filter((t) => t[1])")
    check(len(ticks) >= 3 and all(order[value] == label for value, label in ticks), "so is their axis", ticks)


def test_hover(report):
    page = report.page
    for mode, x in ((0, 0.6), (0, 0.03), (1, 0.5)):  # a bar, the label of a bar, a line
        page.value(f"chartOf(0, {mode}).scrollIntoView({{block: 'center'}})")
        page.frames(4)
        left, top, width, height = page.value(
            f"(({{x, y, width, height}}) => [x, y, width, height])(chartOf(0, {mode}).getBoundingClientRect())")
        page.mouse(left + x * width, top + (0.12 if mode == 0 else 0.5) * height)
        page.frames(4)
        tip = page.value(f"(({{title, body, opacity}}) => ({{title, body: body.map((b) => b.lines).flat(), opacity}}))"
                         f"(Chart.getChart(chartOf(0, {mode})).tooltip)")
        labels = ({report.label(0, i) for i in report.data["components"][0][0]["i"][:4]} if mode == 0
                  else {str(y) for y in range(1500, 2000)})
        check(tip["opacity"] > 0 and tip["title"] and tip["title"][0] in labels, f"hover on mode {mode + 1} at {x}", tip)
        check(tip["body"] and re.match(r"^[\u22120-9.e,]+", tip["body"][0]), f"hover shows a value at {x}", tip)
        page.mouse(1, 1)


def test_search(report):
    page = report.page
    report.search("word07")
    found = report.results()
    equal([(f[0], f[1]) for f in found], [("word07", "word")], "a word is found")
    value = {r: (c[0]["i"].index(7) + 1, c[0]["v"][c[0]["i"].index(7)])
             for r, c in enumerate(report.data["components"]) if 7 in c[0]["i"]}
    equal(sorted(report.marked()), sorted(r + 1 for r in value), "its panels are marked")
    for hit in found[0][2]:
        component, rank, number = re.fullmatch(r"component (\d+): rank (\d+), (\S+)", hit).groups()
        want = value[int(component) - 1]
        check(int(rank) == want[0] and abs(float(number.replace("\u2212", "-")) - want[1]) <= 6e-4 * abs(want[1]),
              f"rank and value: {hit}", want)
    equal(len(found[0][2]), len(value), "all of its components are listed")

    report.search("WORD0")  # part of a label, in other letters
    equal(sorted(f[0] for f in report.results()), [f"word{i:02}" for i in range(10)], "part of a label")

    index = report.data["components"][1][0]["i"][49]
    report.search(report.label(0, index))
    hits = report.results()[0][2]
    check(any(h.startswith("component 2: rank 50, ") for h in hits), "a label in rank 50 is found", hits)
    check(2 in report.marked(), "and its panel is marked", report.marked())
    check("rank 50" in report.text("#component-2 .found"), "and says so", report.text("#component-2 .found"))

    report.search("1777")
    found = report.results()
    check(found and found[0][:2] == ["1777", "year"], "a year is found", found[:1])
    report.search("curacao")
    check(report.results() and report.results()[0][0] == "Curaçao", "accents do not matter", report.results())

    page.value("scrollTo(0, 0)")
    report.search("word41")
    best = int(re.match(r"component (\d+)", report.results()[0][2][0])[1])
    page.key("Enter", number=13)
    page.frames(4)
    equal(page.value("document.activeElement.id"), f"component-{best}", "Enter goes to the best panel")
    check(page.value("inView(document.activeElement)"), "which is in view then")
    check(page.value("document.getElementById('search-results').hidden"), "and the list is closed")
    report.search("word41")
    last = report.results()[0][2][-1]
    page.value("[...document.querySelectorAll('#search-results a')].at(-1).click()")
    page.frames(4)
    equal(page.value("document.activeElement.id"), f"component-{re.match(r'component (.+):', last)[1]}", "a click goes there")

    report.search("nothing is called so")
    equal(report.results(), [], "what is not there is not found")
    check("No label" in report.text("#search-status"), "and the page says so", report.text("#search-status"))
    equal(report.marked(), [], "and marks nothing")
    report.search("word1")
    page.key("Escape", number=27)
    page.frames()
    equal(page.value("[document.getElementById('search').value, document.querySelectorAll('.match').length]"), ["", 0],
          "Escape clears the search")
    report.clean("searched")


def test_every_embedded_label_is_found(report):
    """Types every label of the page, without the keyboard, and looks at the first line of the answer."""
    labels = sorted({report.label(m, i) for columns in report.data["components"] for m, c in enumerate(columns)
                     for i in c.get("i", c.get("n", []))})
    missed = report.page.value(f"""(() => {{
      const input = document.getElementById('search');
      const found = (label) => {{
        input.value = label;
        input.dispatchEvent(new Event('input'));
        return [...document.querySelectorAll('#search-results b')].some((b) => b.textContent === label);
      }};
      const missed = {json.dumps(labels)}.filter((label) => !found(label));
      input.value = '';
      input.dispatchEvent(new Event('input'));
      return missed;
    }})()""")
    check(len(labels) > 100, "there are labels", len(labels))
    equal(missed, [], "labels that are not found")


def test_hostile_labels(report):
    page = report.page
    for text, shown in (("</script>", PLACES[0].decode()), ("onerror", PLACES[1].decode()), ("no utf", "\ufffd\ufffd no UTF-8"),
                        ("two", "two lines"), ("\\u003c", PLACES[7].decode())):
        report.search(text)
        check(any(f[0] == shown for f in report.results()), f"{text} is found as text", report.results()[:1])
    page.value("[...document.querySelectorAll('canvas')].forEach((c) => c.dispatchEvent(new MouseEvent('mouseover')))")
    page.key("Escape", number=27)
    equal(page.value("window.hacked ?? null"), None, "nothing ran")
    equal(page.value("document.querySelectorAll('img, svg[onload], main script, [onmouseover], #x').length"), 0,
          "no label became an element")
    check(MODE in report.text("#component-1"), "the name of a mode is text", report.text("#component-1")[:300])
    report.clean("hostile labels")


def test_dark(report):
    page = report.page
    page.value("chartOf(0, 0).scrollIntoView()")
    page.frames(4)
    brightness = "(() => { const c = getComputedStyle(document.body).backgroundColor.match(/\\d+/g); return +c[0]; })()"
    bar = "Chart.getChart(chartOf(0, 0)).getDatasetMeta(0).data[0].options.backgroundColor"
    light, light_bar = page.value(brightness), page.value(bar)
    page.prefer(color_scheme="dark")
    dark, dark_bar = page.value(brightness), page.value(bar)
    check(light > 200 and dark < 60, "the paper is dark in the dark", (light, dark))
    check(light_bar != dark_bar, "charts change their colours", (light_bar, dark_bar))
    report.clean("dark")
    page.prefer(color_scheme="light")


def test_print(report):
    page = report.page
    page.prefer(color_scheme="dark")  # paper stays white
    page.value("""addEventListener('beforeprint', () => {
      window.printed = { drawn: canvases.filter((c) => Chart.getChart(c) && inked(c) > 200).length,
                         light: getComputedStyle(document.body).getPropertyValue('--ink') };
    })""")
    pdf = page.pdf()
    check(pdf.startswith(b"%PDF-") and len(pdf) > 20_000, "a PDF", pdf[:20])
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    check(2 <= pages <= 3 + report.rank, "a panel is at most a page", pages)
    printed = page.value("window.printed")
    equal(printed["drawn"], page.value("canvases.length"), "all charts are drawn before printing")
    equal(printed["light"].strip(), "#1c2329", "in light colours")
    page.frames(4)
    equal(page.value("document.documentElement.className"), "js", "and the page is as before")
    page.prefer(color_scheme="light")
    page.call("Emulation.setEmulatedMedia", media="print")
    equal(page.value("getComputedStyle(document.querySelector('.search')).display"), "none", "no search on paper")
    equal(page.value("getComputedStyle(document.querySelector('.component')).breakInside"), "avoid", "panels stay whole")
    page.call("Emulation.setEmulatedMedia", media="")
    report.clean("printed")


def test_phone(report):
    """Nothing sticks out to the right at 360 pixels, with and without the list of the search."""
    page = report.page
    page.size(360, 740, mobile=True, scale=2)
    for name in ("plain", "searched"):
        if name == "searched":
            report.search("a")
        page.frames(4)
        equal(page.value("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"), 360,
              f"{name}: width of the page")
        wide = page.value("""[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 360.5
          && getComputedStyle(e).position !== 'absolute').map((e) => e.tagName + '.' + e.className).slice(0, 5)""")
        equal(wide, [], f"{name}: elements that stick out")
    page.key("Escape", number=27)
    page.value("chartOf(0, 0).scrollIntoView()")
    page.frames(6)
    check(page.value("inked(chartOf(0, 0))") > 500, "charts are drawn on a phone")
    report.clean("phone")


def test_without_scripts(browser, path):
    """A mail reader that runs no script still shows the largest entries."""
    page = browser.open("about:blank")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.loaded = False
    page.call("Page.navigate", url=pathlib.Path(path).as_uri())
    while not page.loaded:  # the tab's socket has a time limit of its own
        page.call("Page.getFrameTree")
    document = page.call("DOM.getDocument")["root"]["nodeId"]
    item = page.call("DOM.querySelector", nodeId=document, selector=".component noscript li")["nodeId"]
    if check(item != 0, "a list in place of a chart"):
        check(page.call("DOM.getBoxModel", nodeId=item)["model"]["height"] > 5, "which can be seen")
    page.close()


def main():
    begin = time.monotonic()
    if not check(CHROMIUM is not None, "chromium", "not found; packages.txt names the package, make deps installs it"):
        finish()
    path = make_report(make_tensor())
    text = path.read_bytes()
    check(len(text) < 3_000_000, "size", len(text))
    with Browser() as browser:
        report = Report(browser, path)
        for test in (test_opens, test_accessible, test_keyboard, test_charts_are_drawn, test_hover, test_search,
                     test_every_embedded_label_is_found, test_hostile_labels, test_dark, test_print, test_phone):
            try:
                test(report)
            except (RuntimeError, TimeoutError, KeyError, IndexError, TypeError, AttributeError) as error:
                check(False, test.__name__, repr(error))
        test_without_scripts(browser, path)
    print(f"{time.monotonic() - begin:.1f} s")
    finish()


if __name__ == "__main__":
    main()
