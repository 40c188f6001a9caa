#!/usr/bin/env python3
"""Makes one image of several architectures from images of one each: an OCI image layout whose index.json names
an image index, under the name that all of them have. A runtime takes the manifest of its own platform."""

import argparse
import json
import os
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from oci_layout import descriptor, to_json, write_layout  # noqa: E402


class Failure(Exception):
    """What is said to whoever called, without a trace."""


def read_image(path):
    """The entry of the only image of a layout, and its blobs."""
    with tarfile.open(path) as archive:
        members = {member.name: archive.extractfile(member).read()
                   for member in archive.getmembers() if member.isfile()}
    if "index.json" not in members:
        raise Failure(f"{path} is no OCI image layout: it has no index.json")
    manifests = json.loads(members["index.json"])["manifests"]
    if len(manifests) != 1 or "platform" not in manifests[0]:
        raise Failure(f"{path} has not one image of one platform: merge what scripts/image.sh makes")
    return manifests[0], [data for name, data in members.items() if name.startswith("blobs/")]


def merge(paths, out, when):
    """Writes the merged image, and returns the digest of its index."""
    entries, blobs = [], {}
    for path in paths:
        entry, of_image = read_image(path)
        entries.append(entry)
        blobs.update((bytes(blob), None) for blob in of_image)
    names = {entry["annotations"]["io.containerd.image.name"] for entry in entries}
    if len(names) != 1:
        raise Failure(f"these are images of different names: {', '.join(sorted(names))}")
    platforms = [entry["platform"]["architecture"] for entry in entries]
    if len(set(platforms)) != len(platforms):
        raise Failure(f"two images are of the same architecture: {', '.join(platforms)}")
    annotations = entries[0]["annotations"]
    manifests = [{key: value for key, value in entry.items() if key != "annotations"}
                 for entry in sorted(entries, key=lambda entry: entry["platform"]["architecture"])]
    index = to_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                     "manifests": manifests})
    top = descriptor("index.v1+json", index)
    top["annotations"] = annotations
    write_layout(out, (*blobs, index), top, when)
    return top["digest"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, help="the tar file of the merged image")
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a tar file of scripts/image.sh")
    arguments = parser.parse_args()
    when = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    try:
        print(merge(arguments.images, arguments.out, when))
    except (Failure, OSError, KeyError, ValueError, tarfile.TarError) as failure:
        sys.exit(f"merge_images.py: {failure}")


if __name__ == "__main__":
    main()
