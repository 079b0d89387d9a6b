"""The page's types are those of the schema."""

from pathlib import Path

from halfgraph.serving.typescript import typescript

TYPES = Path(__file__).parents[2] / "web" / "src" / "types.ts"


def test_the_committed_types_are_those_of_the_schema():
    assert TYPES.read_text(encoding="utf-8") == typescript(), "run: make types"


def test_keys_optional_fields_and_choices_are_those_of_the_json():
    text = typescript()
    assert "  from: number;\n  to: number;\n" in text
    assert "  confidence?: number;\n" in text
    assert '  role: "anchor" | "variable" | "target";\n' in text
    assert "  row: Record<string, Cell>;\n" in text
    assert "  heads: number[] | null;\n" in text
