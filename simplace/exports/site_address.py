"""Find the address of the site's pages: where the installed package's own metadata say that its documentation is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata

from simplace._version import __version__

_LABEL = "documentation"


def find_page_address(page: str) -> str:
    """Return the address of a page such as "rules/doctor/late-log-flag", "" where the package names no site.

    The address stands under `[project.urls]` of pyproject.toml, "Documentation"; the site has a folder a version.
    """
    site = _find_site()
    return f"{site}/{__version__}/{page}/" if site else ""


def _find_site() -> str:
    try:
        links: list[str] = metadata("simplace").get_all("Project-URL") or []
    except PackageNotFoundError:  # run from its sources
        return ""
    for link in links:
        label, _, address = link.partition(",")
        if label.strip().lower() == _LABEL:
            return address.strip().rstrip("/")
    return ""
