"""A headless Chromium, by Selenium: both are Debian's."""

import importlib.util
import json
import os
import shutil
import subprocess
import urllib.request

from _scene import needs

AXE = "axe-core@4.10.3"


def needs_browser():
    needs(importlib.util.find_spec("selenium"), "python3-selenium is not installed")
    for name in ("chromium", "chromedriver"):
        needs(shutil.which(name), "chromium and chromium-driver are not installed")


class Browser:
    def __init__(self, width=1200, height=1000):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking"):
            options.add_argument("--" + word)
        options.add_argument(f"--window-size={width},{height}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = Service(shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(service=driver, options=options)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.driver.quit()

    def look(self, script, *arguments):
        return self.driver.execute_script("return " + script, *arguments)

    def command(self, name, **arguments):
        return self.driver.execute_cdp_cmd(name, arguments)

    def press(self, *keys):
        """As a keyboard does, wherever the focus is."""
        for key in keys:
            for kind in ("rawKeyDown", "keyUp"):
                code = {"Tab": 9, "Enter": 13}.get(key, 0)
                self.command(
                    "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code
                )

    def resize(self, width, height=900):
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def prefer(self, scheme):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", features=[feature])

    def complaints(self):
        """Of its console, since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that it has asked for, since the last call."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        sent = [m for m in messages if m["method"] == "Network.requestWillBeSent"]
        return {message["params"]["request"]["url"] for message in sent}

    def violations(self, axe):
        """What axe-core finds."""
        self.driver.execute_script(axe)
        run = "axe.run().then((found) => arguments[0](found.violations.map((v) => v.id)))"
        return self.driver.execute_async_script(run)


def fetch_axe(folder):
    """axe-core's text, by npm; None: there is no npm, or no network."""
    if shutil.which("npm") is None:
        return None
    call = ["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, AXE]
    if subprocess.run(call, capture_output=True, timeout=120).returncode != 0:
        return None
    with open(os.path.join(folder, "node_modules/axe-core/axe.min.js")) as file:
        return file.read()


def fetch(address):
    """(headers, body) without a browser."""
    with urllib.request.urlopen(address, timeout=20) as answer:
        return answer.headers, answer.read()
