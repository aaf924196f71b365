"""A real headless Chromium, driven through its debugging pipe: no driver, no socket."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
MISSING = "page tests need a browser: apt-get install chromium"
_PATIENCE = 20  # seconds until a page must have drawn itself


class Page:
    """One tab."""

    def __init__(self, send: Any, receive: Any) -> None:
        self._send, self._receive, self._number = send, receive, 0
        self.session: str | None = None
        self.console: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        self._send.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._receive.read(1)) != b"\0":
            assert byte, "the browser is gone"
            data += byte
        answer: dict[str, Any] = json.loads(data)
        method = answer.get("method")
        if method == "Runtime.exceptionThrown":
            self.console.append(str(answer["params"]["exceptionDetails"].get("exception")))
        if method == "Log.entryAdded":
            self.console.append(answer["params"]["entry"]["text"])
        return answer

    def open(self, path: Path, fragment: str = "") -> None:
        """Loads a file and waits until the report has drawn itself."""
        went = self.call("Page.navigate", url=path.as_uri() + fragment)
        assert "errorText" not in went, went
        deadline = time.monotonic() + _PATIENCE
        while not self.value("document.readyState === 'complete' && document.body.dataset.ready"):
            assert time.monotonic() < deadline, self.console
            time.sleep(0.005)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives; a promise is waited for."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def press(self, *keys: str) -> None:
        """Presses keys (``j``, ``Enter``) and waits for the next frame."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)
        self.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def size(self, width: int, height: int, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def scheme(self, name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one tab, ended with the context."""
    assert CHROMIUM is not None
    to_browser, from_browser = os.pipe(), os.pipe()

    def numbered() -> None:  # the browser reads from 3 and writes to 4
        os.dup2(to_browser[0], 13)
        os.dup2(from_browser[1], 14)
        os.dup2(13, 3)
        os.dup2(14, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=numbered,
            close_fds=False,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            with (
                open(to_browser[1], "wb", buffering=0) as send,
                open(from_browser[0], "rb") as receive,
            ):
                yield Page(send, receive)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
