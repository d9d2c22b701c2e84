"""Start a headless Chromium with Debian's driver; nothing is downloaded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
).split()


class NoBrowserError(Exception):
    """Report what is missing to start a browser."""


def start(profile: Path, width: int = 1400, height: int = 900) -> Any:
    """Return a selenium driver with a fresh profile folder; raise `NoBrowserError` where something is missing."""
    try:
        from selenium import webdriver
    except ImportError:
        raise NoBrowserError("selenium is not installed") from None
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        raise NoBrowserError(f"there is no {'chromedriver' if chromium else 'chromium'}")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    running.set_script_timeout(120)
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    running.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    return running
