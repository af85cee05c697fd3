from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver

# Nothing that talks to the outside: only the pages of the test's own server are wanted.
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,900",
)


def without(reason: str) -> None:
    """Skip, or fail where everything has to run."""
    if os.environ.get("ALKSTORE_REQUIRE") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium() -> Iterator[webdriver.Chrome]:
    """A headless Chromium, the same for all tests; Debian's packages chromium and chromium-driver."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not (browser and driver):
        without("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = str(browser)
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as session:
        yield session
