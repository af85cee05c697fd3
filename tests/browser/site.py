"""The admin as somebody at a screen uses it: by what is written on it."""

from __future__ import annotations

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

PATIENCE = 20
"""Seconds until a page that does not come has failed the test."""


class Site:
    """A browser at a site; whatever leads to another page waits for that page."""

    def __init__(self, chromium: Chrome, url: str) -> None:
        self.chromium = chromium
        self.url = url
        chromium.delete_all_cookies()
        chromium.get_log("browser")

    def log_in(self, name: str, password: str) -> None:
        self.chromium.get(f"{self.url}/admin/")
        self.chromium.find_element(By.NAME, "username").send_keys(name)
        self.chromium.find_element(By.NAME, "password").send_keys(password)
        self._leave(self.chromium.find_element(By.CSS_SELECTOR, "[type=submit]"))

    def follow(self, text: str) -> None:
        """Click a link in the main part of the page."""
        self._leave(self.chromium.find_element(By.CSS_SELECTOR, "#main").find_element(By.LINK_TEXT, text))

    def press(self, label: str) -> None:
        """Press the first button of that name."""
        input_or_button = f"//input[@type='submit'][@value='{label}'] | //button[@type='submit'][.='{label}']"
        self._leave(self.chromium.find_element(By.XPATH, input_or_button))

    def choose_all(self, action: str) -> None:
        """Tick every row of a list and run an action."""
        toggle = self.chromium.find_element(By.ID, "action-toggle")
        if not toggle.is_selected():  # on the way back the browser remembers
            toggle.click()
        Select(self.chromium.find_element(By.NAME, "action")).select_by_visible_text(action)
        self._leave(self.chromium.find_element(By.NAME, "index"))

    @property
    def text(self) -> str:
        """What is written in the main part of the page."""
        return self.chromium.find_element(By.ID, "content").text

    @property
    def messages(self) -> list[str]:
        return [each.text for each in self.chromium.find_elements(By.CSS_SELECTOR, ".messagelist li")]

    def rows(self) -> list[list[str]]:
        """The cells of a list, without the boxes to tick."""
        rows = self.chromium.find_elements(By.CSS_SELECTOR, "#result_list tbody tr")
        return [
            [cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td:not(.action-checkbox)")]
            for row in rows
        ]

    def unfold(self, text: str) -> None:
        """Open what is folded under the last heading of that name."""
        found = self.chromium.find_elements(By.TAG_NAME, "summary")
        [each for each in found if each.text == text][-1].click()

    def fits(self, width: int) -> bool:
        """Whether a page this wide shows without scrolling sideways."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            script = "return document.documentElement.scrollWidth"
            return int(self.chromium.execute_script(script)) <= width
        finally:
            self.chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def complaints(self) -> list[str]:
        """What the browser complained about: scripts that failed, files that were not there."""
        entries = self.chromium.get_log("browser")
        return [entry["message"] for entry in entries if "favicon.ico" not in entry["message"]]

    def _leave(self, element: WebElement) -> None:
        old = self.chromium.find_element(By.TAG_NAME, "html")
        element.click()
        wait = WebDriverWait(self.chromium, PATIENCE)
        wait.until(expected_conditions.staleness_of(old))
        wait.until(lambda chromium: chromium.execute_script("return document.readyState") == "complete")
