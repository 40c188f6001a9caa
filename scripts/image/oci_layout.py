"""An OCI image layout of one layer in a tar file, the same bytes for the same content. What is
written is what the image specification asks for (image-layout.md, manifest.md, config.md)."""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import elf_programs  # noqa: E402


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def to_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def add(archive, name, data=b"", **fields):
    """Adds a member that belongs to root; `fields` are those of tarfile.TarInfo."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.mode = 0o644
    for field, value in fields.items():
        setattr(member, field, value)
    archive.addfile(member, io.BytesIO(data))


def descriptor(kind, data):
    return {
        "mediaType": f"application/vnd.oci.image.{kind}",
        "digest": digest(data),
        "size": len(data),
    }


def write_layout(out, blobs, entry, when):
    """All or nothing: an image that is only half there would be imported by somebody."""
    index = to_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                     "manifests": [entry]})
    members = {"oci-layout": to_json({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    members.update(("blobs/" + digest(blob).replace(":", "/"), blob) for blob in blobs)
    folder = os.path.dirname(out) or "."
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".image.", delete=False) as file:
        try:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
                for name, data in sorted(members.items()):
                    add(archive, name, data, mtime=when)
            os.fchmod(file.fileno(), 0o644)
            file.close()
            os.rename(file.name, out)
        except BaseException:
            os.unlink(file.name)
            raise


def write_image(out, reference, layer, config, when=0, architecture=elf_programs.OWN):
    """Writes the image `reference` ("NAME:TAG") to the file `out`: `layer` is a tar, `config` what the
    image's configuration says beside platform and layers, `when` the time of all files in seconds
    since 1970. The manifest's digest. Errors: OSError, and then `out` is as it was."""
    packed = gzip.compress(layer, compresslevel=6, mtime=0)
    where = {"architecture": architecture, "os": "linux"}
    rootfs = {"type": "layers", "diff_ids": [digest(layer)]}
    config = to_json({**config, **where, "rootfs": rootfs})
    manifest = to_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("config.v1+json", config),
        "layers": [descriptor("layer.v1.tar+gzip", packed)],
    })
    entry = descriptor("manifest.v1+json", manifest)
    entry["platform"] = where
    entry["annotations"] = {"io.containerd.image.name": reference,
                            "org.opencontainers.image.ref.name": reference.rsplit(":", 1)[-1]}
    write_layout(out, (packed, config, manifest), entry, when)
    return digest(manifest)
