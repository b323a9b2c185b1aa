# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Drives Chromium over its DevTools protocol, with the standard library alone."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

#: the page waits this long for an answer, on a busy machine
PATIENCE = 120
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser():
    """Return the path of a Chromium; None where there is none."""
    return os.environ.get("PROBE_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


def has_chinese_font():
    """Return whether the machine has a font with Chinese letters."""
    lister = shutil.which("fc-list")
    if lister is None:
        return False
    return bool(
        subprocess.run(
            [lister, ":lang=zh"], capture_output=True, text=True, check=False
        ).stdout.strip()
    )


class Socket:
    """A WebSocket that sends and receives texts."""

    def __init__(self, address):
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", address).groups()
        self.link = socket.create_connection((host, int(port)), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.link.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.link.recv(1)
        assert b" 101 " in answer.split(b"\r\n")[0], answer

    def send(self, text):
        data = text.encode()
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x81, 0x80 | size)
        elif size <= 0xFFFF:
            head = struct.pack("!BBH", 0x81, 0xFE, size)
        else:
            head = struct.pack("!BBQ", 0x81, 0xFF, size)
        self.link.sendall(head + b"\0\0\0\0" + data)  # a mask of zeros leaves the text as it is

    def receive(self):
        parts = []
        while True:
            first, size = self._exactly(2)
            size &= 0x7F
            if size > 125:
                size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
            content = self._exactly(size)
            if first & 0x0F in (0, 1):
                parts.append(content)
                if first & 0x80:
                    return b"".join(parts).decode()

    def _exactly(self, size):
        got = bytearray()
        while len(got) < size:
            more = self.link.recv(size - len(got))
            if not more:
                raise ConnectionError("the browser has closed the connection")
            got += more
        return bytes(got)


class Browser:
    """One Chromium without a window, and one page in it.

    Attributes:
        errors: errors and warnings of the console, and exceptions.
        requests: addresses that the page has asked for.
    """

    def __init__(self, width=1280, height=900):
        self._folder = tempfile.mkdtemp(prefix="browser-")
        self._process = subprocess.Popen(
            [
                find_browser(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-port=0",
                f"--user-data-dir={self._folder}",
                "--no-first-run",
                "--lang=en-US",
                "--disable-background-networking",
                "--disable-component-update",
                "--hide-scrollbars=false",
                f"--window-size={width},{height}",
                "--force-device-scale-factor=1",
                "about:blank",
            ],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self.errors, self.requests, self._number = [], [], 0
        self._socket = Socket(self._address())
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.size(width, height)

    def _address(self):
        for line in self._process.stderr:
            if "DevTools listening on" in line:
                return line.split("listening on ")[1].strip()
        raise RuntimeError("the browser has ended before it listened")

    def _call(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps({**message, "sessionId": session} if session else message))
        while True:
            answer = json.loads(self._socket.receive())
            self._note(answer)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _note(self, message):
        kind, given = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif kind == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.errors.append(given["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.errors.append(str(given["args"]))
        elif kind == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def call(self, method, **parameters):
        """Call a method of the protocol in the page."""
        return self._call(method, self._session, **parameters)

    def js(self, text):
        """Return the value of an expression in the page; promises are awaited."""
        found = self.call(
            "Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def used(self, work="Task"):
        """Return the processor time of the page's thread since the page was opened, in ms. Other work adds none.

        Work is a kind of DevTools' metrics: Task is all, Script is that of JavaScript.
        """
        metrics = self.call("Performance.getMetrics")["metrics"]
        (seconds,) = (metric["value"] for metric in metrics if metric["name"] == f"{work}Duration")
        return 1000 * seconds

    def wait(self, condition):
        """Wait until an expression is true in the page."""
        end = time.monotonic() + PATIENCE
        while not self.js(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never: {condition}; {self.errors}"
            self.js("new Promise((done) => requestAnimationFrame(() => done()))")

    def open(self, path, fragment=""):
        """Open a file and wait until it is ready; a report marks that itself."""
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.requests.clear()
        self.call("Page.navigate", url=Path(path).as_uri() + fragment)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'")
        self.wait("!document.getElementById('app') || document.documentElement.dataset.ready")

    def key(self, key, code="", text=None, modifiers=0):
        """Press a key."""
        text = (
            text if text is not None else (key if len(key) == 1 else {"Enter": "\r"}.get(key, ""))
        )
        codes = {
            "Enter": 13,
            "Tab": 9,
            "Escape": 27,
            "ArrowDown": 40,
            "ArrowUp": 38,
            "ArrowLeft": 37,
            "ArrowRight": 39,
        }
        given = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": modifiers}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **given
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)
        self.js(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )

    def size(self, width, height, scale=1):
        """Set the size of the page."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def dark(self, is_dark):
        """Ask for dark or light colours, as a system does."""
        value = "dark" if is_dark else "light"
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": value}],
        )
        self.js(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )

    def picture(self, form="png", **options):
        """Return a screenshot."""
        self.js(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )
        return base64.b64decode(self.call("Page.captureScreenshot", format=form, **options)["data"])

    def close(self):
        """End the browser."""
        self._socket.link.close()
        self._process.terminate()
        self._process.wait(30)
        self._process.stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
