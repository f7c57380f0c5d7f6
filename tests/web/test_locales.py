"""Texts: en and zh name exactly the nodes' inputs and outputs, and every node has help pages."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCALES = ROOT / "locales"
NODES = ROOT / "h3video" / "nodes"


def locale(language, file="nodeDefs"):
    return json.loads((LOCALES / language / f"{file}.json").read_text(encoding="utf-8"))


def schemas():
    """node id -> {display_name, description, inputs {name: tooltip}, outputs [(name, tooltip)]}.

    Read off the source, so that it needs no ComfyUI: the schemas are literals.
    """
    found = {}
    for file in sorted(NODES.glob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and _name(call.func) == "io.Schema":
                schema = {k.arg: k.value for k in call.keywords}
                if isinstance(schema["node_id"], ast.Constant):
                    found[schema["node_id"].value] = _schema(schema)
    return found


def _schema(schema):
    return {
        "display_name": schema["display_name"].value,
        "description": schema["description"].value,
        "inputs": dict(map(_socket, schema["inputs"].elts)),
        "outputs": [_socket(e) for e in schema["outputs"].elts],
    }


def _socket(call):
    """(name shown, tooltip) of an Input(...) or Output(...), also inside advanced(...)."""
    if _name(call.func) == "advanced":
        call = call.args[0]
    options = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    return options.get("display_name") or call.args[0].value, options.get("tooltip")


def _name(function):
    return ast.unparse(function)


SCHEMAS = schemas()


def test_the_nodes_were_found():
    from h3video.nodes import NODES as registered

    assert set(SCHEMAS) == set(registered)


def test_they_agree_with_what_the_server_said():
    snapshot = ROOT / "tests" / "comfy" / "object_info.json"
    if not snapshot.exists():
        pytest.skip("no snapshot")
    for node_id, seen in json.loads(snapshot.read_text(encoding="utf-8")).items():
        schema = SCHEMAS[node_id]
        assert list(schema["inputs"]) == list(seen["inputs"]), node_id
        # ComfyUI 0.3.75 names an output without display_name by its type, so only count them.
        assert len(schema["outputs"]) == len(seen["outputs"]), node_id


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_input_and_output_is_translated(language):
    texts = locale(language)
    assert list(texts) == list(locale("en")) and set(texts) == set(SCHEMAS)
    for node_id, schema in SCHEMAS.items():
        text = texts[node_id]
        assert set(text) == {"display_name", "description", "inputs", "outputs"}
        assert set(text["inputs"]) == set(schema["inputs"]), node_id
        assert set(text["outputs"]) == {str(i) for i in range(len(schema["outputs"]))}, node_id
        sockets = [*text["inputs"].values(), *text["outputs"].values()]
        for words in [text["display_name"], text["description"],
                      *(s[k] for s in sockets for k in ("name", "tooltip"))]:  # fmt: skip
            assert words.strip(), node_id
            # vue-i18n, through which ComfyUI's page passes them, reads these as its own syntax
            assert not re.search(r"[{}@|]|\$t", words), words


def test_english_is_what_the_nodes_say():
    for node_id, schema in SCHEMAS.items():
        text = locale("en")[node_id]
        assert text["display_name"] == schema["display_name"]
        assert text["description"] == schema["description"], node_id
        assert {k: v["tooltip"] for k, v in text["inputs"].items()} == schema["inputs"]
        outputs = [(o["name"], o["tooltip"]) for o in text["outputs"].values()]
        assert outputs == schema["outputs"], node_id


def test_chinese_is_chinese():
    for node_id, text in locale("zh").items():
        for words in [text["display_name"], text["description"],
                      *(s["tooltip"] for s in [*text["inputs"].values(),
                                               *text["outputs"].values()])]:  # fmt: skip
            assert re.search(r"[\u4e00-\u9fff]", words), f"{node_id}: {words}"


def test_other_texts_have_the_same_keys():
    def keys(data):
        return {k: keys(v) for k, v in data.items()} if isinstance(data, dict) else None

    assert keys(locale("en", "main")) == keys(locale("zh", "main"))


@pytest.mark.parametrize("node_id", sorted(SCHEMAS))
@pytest.mark.parametrize("page", ["{}.md", "{}/zh.md"])
def test_help_pages_describe_every_input_and_output(node_id, page):
    text = (ROOT / "web" / "docs" / page.format(node_id)).read_text(encoding="utf-8")
    assert text.startswith("# H3 ") and text.count("\n## ") >= 4
    for name in [*SCHEMAS[node_id]["inputs"], *(n for n, _ in SCHEMAS[node_id]["outputs"])]:
        assert re.search(rf"\b{name}\b", text), f"{name} is not described"
    if page.startswith("{}/"):
        title = text.splitlines()[0].removeprefix("# ")
        assert title == locale("zh")[node_id]["display_name"]
    else:
        assert text.splitlines()[0] == f"# {SCHEMAS[node_id]['display_name']}"


def test_no_help_page_is_left_over():
    pages = {p.relative_to(ROOT / "web" / "docs").parts[0].removesuffix(".md")
             for p in (ROOT / "web" / "docs").rglob("*.md")}  # fmt: skip
    assert pages == set(SCHEMAS)
