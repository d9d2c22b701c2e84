"""Mark pages with outputs that are sentences, or long commands, for the style sheet: these wrap, tables would not."""

_WRAPPED = ("rules/", "doctor.md", "gallery.md", "idle.md", "papers.md", "suggest.md")


def on_page_content(html, page, **_):
    """Put the content of such a page into an element of its own (an event of mkdocs)."""
    return f'<div class="wrapped-page">{html}</div>' if page.file.src_uri.startswith(_WRAPPED) else html
