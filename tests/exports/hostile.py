"""Names that break careless writers of files."""

NAMES = (
    "plain/MatMul",
    "quote\"and'apostrophe",
    "<script>alert(1)</script>",
    "line\nbreak\ttab",
    "control\x01character",
    "]]>&amp;<!--",
    "back\\slash{brace}|bar",
    "層/行列積/Умножение/𝛼",
    "x" * 10_000,
)
