# SPDX-License-Identifier: MIT
"""A small client of headless Chromium: the DevTools protocol over a WebSocket (RFC 6455) with the standard library alone.

    with Browser() as browser:
        page = browser.open("file:///tmp/r.html")
        page.value("document.title")
"""

import base64
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class WebSocket:
    """One connection: sends text, receives text."""

    def __init__(self, host, port, path, seconds=20):
        self.socket = socket.create_connection((host, port), timeout=seconds)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0] + b" ":
            raise ConnectionError(f"the browser answered {head[:100]!r}")

    def _more(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the browser closed the connection")
        return data

    def _take(self, count):
        while len(self.buffer) < count:
            self.buffer += self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def _send(self, opcode, payload):
        mask = os.urandom(4)  # what a client sends is masked
        size = len(payload)
        head = bytes([0x80 | opcode])
        head += (bytes([0x80 | size]) if size < 126 else struct.pack(">BH", 0x80 | 126, size) if size < 1 << 16
                 else struct.pack(">BQ", 0x80 | 127, size))
        whole = int.from_bytes(payload, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        self.socket.sendall(head + mask + whole.to_bytes(size, "big"))

    def send(self, text):
        self._send(1, text.encode())

    def receive(self):
        message = b""
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._take(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._take(8))
            payload = self._take(size)
            opcode = first & 0x0F
            if opcode == 8:
                raise ConnectionError("the browser closed the connection")
            if opcode == 9:  # ping
                self._send(10, payload)
            elif opcode in (0, 1):
                message += payload
                if first & 0x80:
                    return message.decode()

    def close(self):
        self.socket.close()


class Page:
    """A tab. `errors` are exceptions and messages of type error, `requests` the addresses that it asked for."""

    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session
        self.errors, self.requests, self.dialogs, self.loaded = [], [], [], False

    def listen(self):
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def event(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self.browser.send("Page.handleJavaScriptDialog", self.session, accept=True)
        elif method == "Page.loadEventFired":
            self.loaded = True

    def go(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        self.wait(lambda: self.loaded, f"{url} to load")

    def wait(self, ready, what, seconds=15):
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError(f"waited {seconds} s for {what}")
            self.value("new Promise(done => setTimeout(done, 20))")  # events arrive meanwhile

    def value(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def frames(self, count=2):
        """Lets the page draw."""
        self.value("(async () => { for (let i = 0; i < %d; ++i) await new Promise(requestAnimationFrame); })()" % count)

    def size(self, width, height, mobile=False, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        self.frames(3)

    def prefer(self, **features):
        """prefer(color_scheme="dark")"""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-" + k.replace("_", "-"), "value": v} for k, v in features.items()])
        self.frames(3)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, key, code=None, number=0):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, windowsVirtualKeyCode=number, **text)

    def mouse(self, x, y, click=False):
        for kind in ("mouseMoved", *(("mousePressed", "mouseReleased") if click else ())):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                      **({"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}))

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)


class Browser:
    """A headless Chromium with a profile of its own, gone when the with statement ends."""

    def __init__(self, seconds=30):
        if CHROMIUM is None:
            raise FileNotFoundError("no chromium was found; packages.txt names the package")
        self.profile = pathlib.Path(tempfile.mkdtemp(prefix="polyad-chromium-"))
        self.pages, self.ids, self.answers = {}, itertools.count(1), {}
        self.socket = None
        # A process group of its own: Chromium starts others, and all end with it.
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            port, path = self._address(seconds)
            self.socket = WebSocket("127.0.0.1", port, path)
        except BaseException:
            self.close()
            raise

    def _address(self, seconds):
        file = self.profile / "DevToolsActivePort"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ConnectionError(f"chromium ended with code {self.process.returncode}")
            lines = file.read_text().splitlines() if file.exists() else []
            if len(lines) >= 2:
                return int(lines[0]), lines[1]
            time.sleep(0.05)
        raise TimeoutError(f"chromium did not listen within {seconds} s")

    def send(self, method, session=None, **params):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self.socket.send(json.dumps(message))
        return number

    def call(self, method, session=None, **params):
        """Sends a command and waits for its answer; events that come before it go to their pages."""
        number = self.send(method, session, **params)
        while number not in self.answers:
            message = json.loads(self.socket.receive())
            if "id" in message:
                self.answers[message["id"]] = message
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].event(message["method"], message["params"])
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url, width=1200, height=900):
        """A new tab with this address, loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, target, session)
        page.listen()
        page.size(width, height)
        page.go(url)
        page.frames()
        return page

    def close(self):
        if self.socket:
            self.socket.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
