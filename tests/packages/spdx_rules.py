#!/usr/bin/env -S python3 -B
"""Whether a bill of materials keeps the rules of SPDX 2.3, and is of these images.

usage: spdx_rules.py BILL.spdx.json IMAGE.tar...

The rules are those of the specification that a reader stumbles over: fields that have to be there, identifiers
that are unique and known, values of the enumerations that we use, checksums of the right form, the verification
code of a package whose files are listed, expressions of licences. Debian 12 has no program that knows them.
Each file of each image is in the bill with its checksums, and nothing else is; a file is one of ours, or of a
package whose version the bill says. Prints what is wrong; exit status 0, 1 if something is.
"""

import hashlib
import io
import json
import re
import sys
import tarfile

IDENTIFIER = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
SUMS = {"SHA1": re.compile("[0-9a-f]{40}"), "SHA256": re.compile("[0-9a-f]{64}")}
LICENCE = re.compile(r"NONE|NOASSERTION|\(?[A-Za-z0-9.+-]+\)?( (AND|OR) \(?[A-Za-z0-9.+-]+\)?)*")
RELATIONSHIPS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK", "GENERATED_FROM"}
PURPOSES = {"APPLICATION", "CONTAINER"}
DOCUMENT_FIELDS = ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo")
PACKAGE_FIELDS = ("SPDXID", "name", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText")
FILE_FIELDS = ("SPDXID", "fileName", "checksums", "licenseConcluded", "licenseInfoInFiles", "copyrightText")
# What an image has that is neither a program nor of a package.
OURS = {"etc/group", "etc/nsswitch.conf", "etc/passwd", "usr/share/spoke/10-spoke.conflist"}


def check_fields(what, element, fields):
    for field in fields:
        if not element.get(field):
            yield f"{what} has no {field}"


def check_document(bill):
    yield from check_fields("the document", bill, DOCUMENT_FIELDS)
    for field, want in (("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"), ("SPDXID", "SPDXRef-DOCUMENT")):
        if bill.get(field) != want:
            yield f"{field} is {bill.get(field)}, not {want}"
    if not re.fullmatch(r"[a-z]+:[^#\s]+", bill["documentNamespace"]):
        yield f"the namespace {bill['documentNamespace']} is no URI without a fragment"
    made = bill["creationInfo"]
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["created"]):
        yield f"created {made['created']}: must be YYYY-MM-DDThh:mm:ssZ"
    for creator in made["creators"] or [""]:
        if not re.fullmatch(r"(Tool|Organization|Person): \S.*", creator):
            yield f'creator "{creator}" must be a Tool, an Organization or a Person'


def check_checksums(what, element):
    for sum_ in element.get("checksums", ()):
        form = SUMS.get(sum_["algorithm"])
        if form is None or not form.fullmatch(sum_["checksumValue"]):
            yield f"{what} has the checksum {sum_}"


def sum_of(file, algorithm):
    return next((one["checksumValue"] for one in file["checksums"] if one["algorithm"] == algorithm), "")


def check_packages(bill, contained):
    """`contained`: the files of each package, by its identifier."""
    for package in bill["packages"]:
        what = f"the package {package.get('SPDXID')}"
        yield from check_fields(what, package, PACKAGE_FIELDS)
        yield from check_checksums(what, package)
        for field in ("licenseConcluded", "licenseDeclared"):
            if not LICENCE.fullmatch(package[field]):
                yield f"{what}: {field} is {package[field]}"
        if package.get("primaryPackagePurpose", "APPLICATION") not in PURPOSES:
            yield f"{what} is for {package['primaryPackagePurpose']}"
        for reference in package.get("externalRefs", ()):
            if not re.fullmatch(r"pkg:(deb/debian|oci)/[^\s@]+@[^\s?+]+\?\S+", reference["referenceLocator"]):
                yield f"{what}: {reference['referenceLocator']} is no package URL"
        files = contained.get(package["SPDXID"], ())
        code = package.get("packageVerificationCode", {}).get("packageVerificationCodeValue")
        if package.get("filesAnalyzed", True):
            sums = "".join(sorted(sum_of(file, "SHA1") for file in files))
            if code != hashlib.sha1(sums.encode()).hexdigest():
                yield f"{what}: the verification code {code} is not that of its files"
        elif files or code:
            yield f"{what} has files, and says that they are not analyzed"


def check_files(bill):
    for file in bill["files"]:
        what = f"the file {file.get('SPDXID')}"
        yield from check_fields(what, file, FILE_FIELDS)
        yield from check_checksums(what, file)
        if not sum_of(file, "SHA1"):
            yield f"{what} has no SHA1, which SPDX demands of a file"
        if not file["fileName"].startswith("./"):
            yield f"{what} is named {file['fileName']}, not relative to its package"


def check_identifiers(bill):
    seen = set()
    for element in (bill, *bill["packages"], *bill["files"]):
        name = element.get("SPDXID", "")
        if not IDENTIFIER.fullmatch(name) or name in seen:
            yield f'the identifier "{name}" is of another form, or there twice'
        seen.add(name)
    for one in bill["relationships"]:
        for end in (one["spdxElementId"], one["relatedSpdxElement"]):
            if end not in seen:
                yield f"a relationship leads to {end}, which is not there"
        if one["relationshipType"] not in RELATIONSHIPS:
            yield f"a relationship is of the type {one['relationshipType']}"
    if not any(one["relationshipType"] == "DESCRIBES" for one in bill["relationships"]):
        yield "the document describes nothing"


def images_in(path):
    """(architecture, path in the image to its bytes) of each image of an OCI layout, or of its index."""
    with tarfile.open(path) as archive:
        members = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}

    def blob(digest):
        return members["blobs/" + digest.replace(":", "/")]

    entries = json.loads(members["index.json"])["manifests"]
    while any("index" in entry["mediaType"] for entry in entries):
        entries = [inner for entry in entries for inner in json.loads(blob(entry["digest"]))["manifests"]]
    for entry in entries:
        layer = json.loads(blob(entry["digest"]))["layers"][0]
        with tarfile.open(fileobj=io.BytesIO(blob(layer["digest"]))) as tree:
            yield (entry["digest"], entry["platform"]["architecture"],
                   {member.name: tree.extractfile(member).read() for member in tree if member.isfile()})


def check_image(bill, contained, path):
    packages = {package["SPDXID"]: package for package in bill["packages"]}
    from_ = {one["spdxElementId"]: packages[one["relatedSpdxElement"]] for one in bill["relationships"]
             if one["relationshipType"] == "GENERATED_FROM" and one["spdxElementId"] not in packages}
    for digest, architecture, tree in images_in(path):
        purl = digest.replace(":", "%3A")
        found = [package for package in packages.values()
                 if any(purl in one["referenceLocator"] for one in package.get("externalRefs", ()))]
        if len(found) != 1:
            yield f"{path}: {len(found)} packages are the image {digest}"
            continue
        listed = {file["fileName"][2:]: file for file in contained.get(found[0]["SPDXID"], ())}
        for name in listed.keys() ^ tree.keys():
            yield f"{path}, {architecture}: {name} is in the {'bill' if name in listed else 'image'} alone"
        for name in listed.keys() & tree.keys():
            for algorithm in ("sha1", "sha256"):
                if sum_of(listed[name], algorithm.upper()) != hashlib.new(algorithm, tree[name]).hexdigest():
                    yield f"{path}, {architecture}: {name} has another {algorithm}"
            source = from_.get(listed[name]["SPDXID"])
            if name in OURS:
                continue
            if source is None or not source.get("versionInfo"):
                yield f"{path}, {architecture}: nobody says what {name} is from"
            elif f"-{architecture}" not in source["SPDXID"] and not source["SPDXID"].endswith("-all"):
                yield f"{path}, {architecture}: {name} is said to be from {source['SPDXID']}"


def check(bill, images):
    yield from check_document(bill)
    yield from check_identifiers(bill)
    files = {file["SPDXID"]: file for file in bill["files"]}
    contained = {}
    for one in bill["relationships"]:
        if one["relationshipType"] == "CONTAINS" and one["relatedSpdxElement"] in files:
            contained.setdefault(one["spdxElementId"], []).append(files[one["relatedSpdxElement"]])
    yield from check_packages(bill, contained)
    yield from check_files(bill)
    for path in images:
        yield from check_image(bill, contained, path)


def main():
    if len(sys.argv) < 3:
        print(__doc__.strip())
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        bill = json.load(file)
    try:
        wrong = list(check(bill, sys.argv[2:]))
    except (KeyError, IndexError) as error:
        wrong = [f"there is no {error}"]
    for line in wrong:
        print(f"{sys.argv[1]}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
