"""export_html: one file with the same view, in which texts of rows are data and nothing is fetched."""

import json
import re
import shutil
import subprocess
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError
from scorekit.widgets.explorer import explore
from scorekit.widgets.export import export_html

# ipywidgets 8.1.0 to 8.1.3 call a method that traitlets has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Deprecated in traitlets 4.1:DeprecationWarning")

SURROGATE = "\ud800"
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "]]>",
    "</ScRiPt >",
    "-->",
    "&lt;b&gt;",
    "\\u003c/script>",
    "\u2028\x00",
)


def frame(count=6, **columns):
    scores = np.arange(count) / count
    return pd.DataFrame({"input": [f"q{i}" for i in range(count)], "output": [f"a{i}" for i in range(count)], "tone_score": scores}).assign(
        **columns
    )


class Page(HTMLParser):
    """What a browser makes of a page: its elements, their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.texts, self.inside = [], [], {}, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        self.inside = f"{tag} {self.elements.count(tag)}"

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.texts[self.inside] = self.texts.get(self.inside, "") + data

    @property
    def payload(self):
        return json.loads(self.texts["script 1"])


def page_of(path):
    return Page(path.read_text(encoding="utf-8"))


def exported(view, tmp_path, **options):
    return page_of(export_html(view, tmp_path / "page.html", **options))


ELEMENTS = ["html", "head", "meta", "meta", "meta", "title", "style", "body", "main", "h1", "div", "script", "script"]

# --- the file


def test_page_is_written_where_it_is_told_and_replaces_what_was_there(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")
    assert export_html(frame(), str(path), title="Tone & more") == path
    page = page_of(path)
    assert page.elements == ELEMENTS
    assert (page.texts["title 1"], page.texts["h1 1"]) == ("Tone & more", "Tone & more")


def test_page_fetches_nothing(tmp_path):
    text = export_html(frame(), tmp_path / "page.html").read_text(encoding="utf-8")
    assert set(re.findall(r"\w+://[^\s\"'`<>)]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert re.findall(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(|\bimport ", text) == []
    attributes = page_of(tmp_path / "page.html").attributes
    assert {name for name, _ in attributes} & {"src", "href", "action", "srcset", "data"} == set()
    policy = dict(attributes)["content"] if "http-equiv" in dict(attributes) else ""
    assert policy.startswith("default-src 'none'; ")


def test_page_has_the_view_script_and_starts_it(tmp_path):
    script = exported(frame(), tmp_path).texts["script 2"]
    assert "function mount(model, el)" in script
    assert "mount(staticModel(payload), view);" in script
    assert "export default" not in script


def test_page_takes_texts_of_rows_for_data_wherever_they_stand(tmp_path):
    bad = " ".join(HOSTILE)
    df = pd.DataFrame(
        {
            "input": [bad, "q"],
            "output": [[bad], {bad: bad}],
            f"{bad}_score": [0.5, 0.1],
            f"{bad}_reason": [bad, None],
            f"{bad}_error": [None, bad],
            f"{bad}_a_prompt": [bad, None],
            f"{bad}_statements": [json.dumps([bad]), None],
            bad: [HOSTILE[0], "x"],
            "label": [bad, None],
            "note": [bad, None],
            "tags": pd.Series([[HOSTILE[0]], None], dtype=object),
        }
    ).set_axis([bad, "b"])
    page = exported(df, tmp_path, title=bad)
    assert page.elements == ELEMENTS
    first = page.payload["rows"][0]
    assert (first["texts"]["input"], first["note"], first["label"], first["tags"]) == (bad, bad, bad, [HOSTILE[0]])
    assert first["results"][0]["statements"] == [{"text": bad, "result": None, "reason": None}]
    assert (first["results"][0]["reason"], first["results"][0]["prompts"], first["cells"]) == (bad, {"a": bad}, {bad: HOSTILE[0]})
    assert (page.payload["setup"]["scores"][0]["name"], page.payload["setup"]["groups"]) == (bad, {bad: [HOSTILE[0], "x"]})


def test_page_is_utf_8_though_texts_have_lone_surrogates_and_scores_are_infinite(tmp_path):
    df = frame(3, output=pd.Series([f"a{SURROGATE}", "é", "日本"], dtype=object)).assign(tone_score=[np.inf, np.nan, 0.5])
    page = exported(df, tmp_path, title=f"T{SURROGATE}", order="frame")
    assert page.texts["title 1"] == "T?"
    assert [row["texts"]["output"] for row in page.payload["rows"]] == ["a\ufffd", "é", "日本"]
    assert [row["scores"]["tone"] for row in page.payload["rows"]] == [None, None, 0.5]
    assert page.payload["bins"] == {"tone": [-1, -1, 10]}


# --- what is in it


def test_page_has_the_view_as_it_is(tmp_path):
    df = frame(4, variant=list("abab"), tone_error=pd.array([None, None, None, "not_text"], dtype="string"))
    view = explore(df, order="random", tags=["a"], save=tmp_path / "labels.jsonl")
    view.row = 2
    for message in ({"do": "label", "label": "fail"}, {"do": "tag", "tag": "b"}, {"do": "note", "note": "n"}, {"do": "tag", "tag": " "}):
        view._handle_custom_msg(message, [])
    view.filters = {"scores": {"tone": (0.1, 0.9)}, "label": "fail"}
    payload = exported(view, tmp_path).payload
    assert payload["start"] == {"filters": {"scores": {"tone": [0.1, 0.9]}, "label": "fail"}, "order": "random"}
    assert payload["setup"] == view.setup | {"readonly": True}
    row = payload["rows"][2]
    assert (row["position"], row["name"], row["label"], row["tags"], row["note"], row["groups"]) == (
        2,
        "2",
        "fail",
        ["b"],
        "n",
        {"variant": "a"},
    )
    assert row["texts"] == {"input": "q2", "output": "a2"}
    assert payload["rows"][3]["errors"] == {"tone": "not_text"}
    assert payload["orders"] == {name: view.rows.order(name, "tone", 0).tolist() for name in ("worst", "random", "informative", "frame")}
    marked = payload["marked"]
    assert (marked["tags"], marked["labels"], marked["save"]) == (
        [{"tag": "a", "rows": 0}, {"tag": "b", "rows": 1}],
        {"pass": 0, "fail": 1, "unsure": 0},
        None,
    )
    assert "out of range" not in json.dumps(payload)  # the last message's problem is none of the page's


def test_page_of_a_frame_is_that_of_its_view(tmp_path):
    df = frame(8, variant=list("abababab"))
    options = {"by": "variant", "order": "informative", "seed": 5, "tags": ["x"]}
    assert exported(df, tmp_path, **options).payload == exported(explore(df, **options), tmp_path).payload


def test_page_leaves_the_view_as_it_was(tmp_path):
    view = explore(frame(8))
    view.filters = {"text": "q1"}
    before = (dict(view.shown), dict(view.detail), dict(view.marked), view.order)
    export_html(view, tmp_path / "page.html")
    assert (view.shown, view.detail, view.marked, view.order) == before


def test_page_of_most_rows_has_the_first_in_the_order_of_reading_and_says_so(tmp_path):
    df = frame(1234, tone_score=[1 - i / 1234 for i in range(1234)])
    view = explore(df)
    view.filters = {"text": "zebra"}
    page = exported(view, tmp_path, most_rows=1000)
    assert page.texts["p 1"] == "The first 1,000 of 1,234 rows in the order of reading."
    payload = page.payload
    assert [row["position"] for row in payload["rows"]] == list(range(1000))
    assert [payload["rows"][0]["texts"]["input"], payload["rows"][-1]["texts"]["input"]] == ["q234", "q1233"]
    assert payload["orders"]["worst"] == list(range(999, -1, -1))
    assert payload["orders"]["frame"] == list(range(1000))
    assert len(payload["bins"]["tone"]) == 1000
    assert payload["bins"]["tone"] == view.rows.bins["tone"][234:].tolist()


def test_page_of_as_many_rows_as_there_are_says_nothing(tmp_path):
    page = exported(frame(6), tmp_path, most_rows=6)
    assert (len(page.payload["rows"]), "p" in page.elements) == (6, False)


@pytest.mark.parametrize("count", [0, 1])
def test_page_of_no_row_and_of_one(tmp_path, count):
    payload = exported(frame(1).iloc[:count], tmp_path).payload
    assert (len(payload["rows"]), payload["orders"]["random"]) == (count, list(range(count)))


def labelled():
    """Scores and labels with one row or more in each cell, one without a label and one unsure."""
    scores = [0.0, 0.1, 0.6, 0.7, 0.8, 0.9, 0.2]
    return frame(7, label=["pass", "fail", "fail", "pass", "pass", None, "unsure"]).assign(tone_score=scores)


def test_page_knows_each_rows_cell_of_the_matrix(tmp_path):
    view = explore(labelled(), agreement=partial(sk.agreement, score="tone_score", human="label", threshold=0.5))
    payload = exported(view, tmp_path).payload
    cells = [
        ["pass", "fail"],
        ["fail", "fail"],
        ["fail", "pass"],
        ["pass", "pass"],
        ["pass", "pass"],
        ["missing", "pass"],
        ["unsure", "fail"],
    ]
    assert [row["cell"] for row in payload["rows"]] == cells
    assert payload["marked"]["matrix"]["counts"] == [[2, 1], [1, 1]]
    assert [row["cell"] for row in exported(frame(2), tmp_path).payload["rows"]] == [None, None]


# --- what cannot be written


def test_page_of_something_else_raises(tmp_path):
    with pytest.raises(
        ArgumentTypeError,
        match=r"export_html: the first argument must be a scored DataFrame, or what explore or side_by_side returned, not list",
    ):
        export_html([1], tmp_path / "page.html")
    with pytest.raises(MissingColumnError, match="needs a column '<name>_score'"):
        export_html(frame()[["input"]], tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_page_of_a_view_with_options_of_a_frame_raises(tmp_path):
    with pytest.raises(ArgumentTypeError, match="export_html: 'order', 'by' go with a frame, and the first argument is none"):
        export_html(explore(frame()), tmp_path / "page.html", order="random", by=None)


@pytest.mark.parametrize(
    ("path", "options", "error", "words"),
    [
        ("none/page.html", {}, OptionRangeError, "it must be in a folder that is there; make '.*none' first"),
        (".", {}, OptionRangeError, "it must be a file, not a folder"),
        ("page.html", {"most_rows": 0}, OptionRangeError, "most_rows=0 is out of range"),
        ("page.html", {"most_rows": 1.5}, ArgumentTypeError, "most_rows must be a whole number, not float"),
        ("page.html", {"title": 5}, ArgumentTypeError, "title must be a text, not int"),
    ],
)
def test_page_that_cannot_be_written_raises_and_writes_nothing(tmp_path, path, options, error, words):
    with pytest.raises(error, match=words):
        export_html(frame(), tmp_path / path, **options)
    assert list(tmp_path.iterdir()) == []


# --- its script answers as Python does

ANSWER = """
const { payload, messages } = JSON.parse(%s);
const model = staticModel(payload);
const answers = [];
const tell = () => answers.push(JSON.stringify({ shown: model.get("shown"), detail: model.get("detail") }));
tell();
for (const message of messages) { model.send(message); tell(); }
console.log(`[${answers.join(",")}]`);
"""


def answers_of(page, messages):
    """What the page's own script answers, run by Node."""
    script = page.texts["script 2"].split("const payload = ", maxsplit=1)[0]
    told = json.dumps(json.dumps({"payload": page.payload, "messages": messages}))
    code = script + ANSWER % told.replace("\u2028", "\\u2028")
    ran = subprocess.run(
        [shutil.which("node"), "--input-type=module", "-"], input=code, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def random_message(rng, view):
    """A message that the page may send next."""
    span = sorted(rng.choice([0.0, 0.2, 0.25, 0.3, 0.5, 0.95, 1.0], 2, replace=False).tolist())
    parts = {
        "scores": {"tone": span},
        "errors": {"tone": str(rng.choice(["any", "not_text"]))},
        "groups": {"variant": str(rng.choice(["a", "b", "(missing)"]))},
        "label": str(rng.choice(["pass", "fail", "none"])),
        "tag": "x",
        "text": str(rng.choice(["Q1", "2", "zebra", "A"])),
        "cell": [["pass", "pass"], ["fail", "pass"], ["missing", "pass"]][rng.integers(3)],
    }
    kept = {name: value for name, value in parts.items() if rng.random() < 0.25}
    if kept == view.filters:
        kept = {} if kept else {"scores": parts["scores"]}
    listed = [line["position"] for line in view.shown["lines"]] or [view.row]
    return [
        {"do": "filters", "filters": kept},
        {"do": "step", "by": int(rng.choice([-3, -1, 1, 1, 2]))},
        {"do": "page", "page": int(rng.integers(-1, 6))},
        {"do": "order", "order": str(rng.choice([name for name in view.setup["orders"] if name != view.order]))},
        {"do": "open", "position": int(rng.choice(listed))},
    ][rng.integers(5)]


def told(shown, detail):
    """What an answer says, with numbers as they print."""
    parts = {name: shown[name] for name in ("asked", "filters", "order", "total", "kept", "place", "page", "row", "problem")}
    histogram = shown["histograms"]["tone"]
    mean = None if histogram["mean"] is None else round(histogram["mean"], 9)
    return parts | {
        "lines": [line["position"] for line in shown["lines"]],
        "texts": detail.get("texts"),
        "histogram": histogram | {"mean": mean},
    }


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("seed", range(4))
def test_script_of_the_page_answers_as_the_view_in_python(tmp_path, seed):
    rng = np.random.default_rng(seed)
    count = 110
    scores = np.where(rng.random(count) < 0.1, np.nan, rng.integers(0, 21, count) / 20)
    df = frame(
        count,
        tone_score=scores,
        tone_error=pd.array(np.where(np.isnan(scores), "not_text", None), dtype="string"),
        variant=rng.choice(np.array(["a", "b", None], dtype=object), count),
        label=rng.choice(np.array(["pass", "fail", None], dtype=object), count),
        tags=rng.choice(np.array(["x", "y", None], dtype=object), count),
    )
    view = explore(df, by="variant", agreement=partial(sk.agreement, score="tone_score", human="label", threshold=0.5))
    page = exported(view, tmp_path)
    messages, wanted = [], [told(view.shown, view.detail)]
    for asked in range(1, 81):
        messages.append(random_message(rng, view) | {"asked": asked})
        view._handle_custom_msg(messages[-1], [])
        wanted.append(told(view.shown, view.detail))
    answers = [told(**answer) for answer in answers_of(page, messages)]
    for message, answer, ours in zip([None, *messages], answers, wanted, strict=True):
        assert answer == ours, message
    assert len({answer["kept"] for answer in answers}) > 5
