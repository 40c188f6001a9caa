"""Which Debian package a file of this machine is of, and what that package says of itself."""

import glob
import os
import re
import subprocess

# Licences as copyright files of Debian call them (copyright-format 1.0, 7.1.2), and as SPDX does. A name that
# is not here may mean several texts.
SPDX_LICENCES = {
    "Apache-2": "Apache-2.0", "Apache-2.0": "Apache-2.0", "Artistic-2.0": "Artistic-2.0",
    "BSD-2-clause": "BSD-2-Clause", "BSD-2-Clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause",
    "BSD-3-Clause": "BSD-3-Clause", "BSL-1.0": "BSL-1.0", "CC0-1.0": "CC0-1.0", "Expat": "MIT",
    "GPL-1+": "GPL-1.0-or-later", "GPL-2": "GPL-2.0-only", "GPL-2.0": "GPL-2.0-only",
    "GPL-2+": "GPL-2.0-or-later", "GPL-2.0+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only",
    "GPL-3+": "GPL-3.0-or-later", "ISC": "ISC", "LGPL-2": "LGPL-2.0-only", "LGPL-2+": "LGPL-2.0-or-later",
    "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3": "LGPL-3.0-only",
    "LGPL-3+": "LGPL-3.0-or-later", "MPL-2.0": "MPL-2.0", "Zlib": "Zlib", "zlib": "Zlib",
}


class UnknownPackage(Exception):
    """Nobody says which package a file is of; says which."""


def spellings(path):
    """The names that dpkg may know a file by: /lib is a link to /usr/lib."""
    real = os.path.realpath(path)
    for name in {os.path.normpath(path), real}:
        yield name
        yield name[4:] if name.startswith("/usr/") else "/usr" + name


def licence_of(text):
    """The SPDX expression of a package whose copyright file this is: the licences of all its files but
    Debian's own. None where the file is not made for machines, or names one that SPDX does not know so."""
    if "copyright-format/1.0" not in text.partition("\n")[0]:
        return None
    terms = set()
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^(Files|License):[ \t]*(.*(?:\n[ \t]+.*)*)", stanza, re.MULTILINE))
        if "Files" not in fields or all(name.startswith("debian/") for name in fields["Files"].split()):
            continue
        names = fields.get("License", "").partition("\n")[0].strip()
        known = [SPDX_LICENCES.get(name) for name in re.split(r"\s+(?:or|and)\s+", names)]
        mixed = " or " in names and " and " in names
        if mixed or not all(known):
            return None
        joint = " OR " if " or " in names else " AND "
        terms.update([f"({joint.join(known)})"] if " or " in names and len(known) > 1 else known)
    return " AND ".join(sorted(terms)) or None


def distribution():
    """"debian-12", say."""
    with open("/etc/os-release", encoding="utf-8") as file:
        words = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    return f"{words.get('ID', '')}-{words.get('VERSION_ID', '')}".replace('"', "")


class Packages:
    """The installed packages, and those that are unpacked in the folders `roots`, each of which has the
    package's control file in DEBIAN/control."""

    def __init__(self, architecture, roots=()):
        self.of_file = {}
        self.roots = {os.path.normpath(root) for root in roots}
        # Packages of two architectures share headers: those of the program's come first.
        lists = glob.glob("/var/lib/dpkg/info/*.list")
        for path in sorted(lists, key=lambda name: (f":{architecture}.list" not in name, name)):
            name = os.path.basename(path)[:-len(".list")]
            with open(path, encoding="utf-8") as file:
                for line in file:
                    self.of_file.setdefault(line.rstrip("\n"), name)
        self.distribution = distribution()

    def find(self, path):
        """The name of a file's package, for component(). Errors: UnknownPackage."""
        for root in self.roots:
            if os.path.normpath(path).startswith(root + "/"):
                return root
        for name in spellings(path):
            if name in self.of_file:
                return self.of_file[name]
        raise UnknownPackage(f"{path} is of no package, so nobody says which version it is")

    def fields(self, name):
        """The fields of the control file of a package, by name."""
        if name in self.roots:
            with open(os.path.join(name, "DEBIAN/control"), encoding="utf-8") as file:
                text = file.read()
        else:
            done = subprocess.run(["dpkg-query", "--status", name], capture_output=True, text=True, check=False)
            if done.returncode:
                raise UnknownPackage(f"dpkg-query {name}: {done.stderr.strip()}")
            text = done.stdout
        return dict(re.findall(r"^([A-Za-z-]+):[ ]*(.*)$", text, re.MULTILINE))

    def licence(self, name, plain):
        """What licence_of() gives for a package; None too where it has no copyright file."""
        root = name if name in self.roots else "/"
        try:
            with open(os.path.join(root, "usr/share/doc", plain, "copyright"), encoding="utf-8") as file:
                return licence_of(file.read())
        except (OSError, UnicodeDecodeError):
            return None

    def component(self, name, **properties):
        """A package as a component of CycloneDX 1.5, with the spoke:PROPERTIES of it that are given. Errors:
        UnknownPackage."""
        values = self.fields(name)
        plain = values["Package"]
        source, _, version = values.get("Source", "").partition(" ")
        purl = (f"pkg:deb/debian/{plain}@{values['Version']}?arch={values['Architecture']}"
                f"&distro={self.distribution}").replace("+", "%2B")
        properties["source"] = f"{source or plain} {version.strip('()') or values['Version']}"
        part = {"type": "library", "bom-ref": purl, "name": plain, "version": values["Version"], "purl": purl,
                "properties": [{"name": f"spoke:{key}", "value": value} for key, value in properties.items()]}
        if values.get("Homepage"):
            part["externalReferences"] = [{"type": "website", "url": values["Homepage"]}]
        licence = self.licence(name, plain)
        if licence:
            part["licenses"] = [{"expression": licence}]
        return part
