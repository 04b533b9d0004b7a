"""Makes the packages: a build backend as PEP 517 wants one, which needs nothing but Python.

QUORATE_PLATFORM names the machines that a program in `quorate/bin` runs on. Without it there is
none, and the package looks for `quorate` in PATH.
"""

import base64
import hashlib
import os
import pathlib
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).parent
SOURCES = ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "backend.py", "pyproject.toml"]


def of_project(name):
    text = (HERE / "pyproject.toml").read_text()
    return re.search(f'^{name} = "(.*)"$', text, re.MULTILINE).group(1)


def metadata():
    return (
        "Metadata-Version: 2.1\n"
        f"Name: quorate\nVersion: {of_project('version')}\nSummary: {of_project('description')}\n"
        f"License: MIT OR Apache-2.0\nHome-page: {of_project('Homepage')}\n"
        f"Requires-Python: {of_project('requires-python')}\n"
        "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text()
    )


def build_wheel(folder, config_settings=None, metadata_directory=None):
    platform = os.environ.get("QUORATE_PLATFORM", "any")
    version = of_project("version")
    name = f"quorate-{version}-py3-none-{platform}.whl"
    info, record = f"quorate-{version}.dist-info", []
    pure = "true" if platform == "any" else "false"
    tags = "".join(f"Tag: py3-none-{each}\n" for each in platform.split("."))
    wheel = f"Wheel-Version: 1.0\nGenerator: quorate\nRoot-Is-Purelib: {pure}\n{tags}"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as made:

        def add(path, data, mode=0o644):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            made.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")

        for path in sorted((HERE / "quorate").rglob("*")):
            is_program = path.parent.name == "bin"
            if path.is_dir() or path.suffix == ".pyc" or is_program and platform == "any":
                continue
            mode = 0o755 if path.name == "quorate" else 0o644
            add(str(path.relative_to(HERE)), path.read_bytes(), mode)
        add(f"{info}/METADATA", metadata().encode())
        add(f"{info}/WHEEL", wheel.encode())
        record.append(f"{info}/RECORD,,\n")
        made.writestr(f"{info}/RECORD", "\n".join(record))
    return name


def build_sdist(folder, config_settings=None):
    root = f"quorate-{of_project('version')}"
    with tarfile.open(pathlib.Path(folder) / f"{root}.tar.gz", "w:gz") as made:
        for path in [*(HERE / name for name in SOURCES), *sorted((HERE / "quorate").glob("*.*"))]:
            if path.is_file():
                made.add(path, f"{root}/{path.relative_to(HERE)}")
        info = HERE / "PKG-INFO"
        info.write_text(metadata())
        made.add(info, f"{root}/PKG-INFO")
        info.unlink()
    return f"{root}.tar.gz"
