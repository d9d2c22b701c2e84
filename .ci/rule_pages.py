"""Mark the pages of rules for the style sheet: their outputs are sentences, which wrap where tables would scroll."""


def on_page_content(html, page, **_):
    """Put the content of a page of a rule into an element of its own (an event of mkdocs)."""
    is_rule = page.file.src_uri.startswith("rules/")
    return f'<div class="rule-page">{html}</div>' if is_rule else html
