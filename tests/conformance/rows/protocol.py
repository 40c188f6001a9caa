"""A: the protocol: environment, standard input, versions, errors (CNI spec 1.1.0, sections 2 to 5)."""

import json
import os
import subprocess

from checklist import row
from lab import VERSIONS, expect, expect_equal

BAD_VERSION = 1
BAD_ENVIRONMENT = 4
BAD_JSON = 6
BAD_CONFIG = 7


@row("A1", "VERSION needs nothing but CNI_COMMAND, and no open standard input", agent=False)
def version_alone(node):
    answer = node.exec({"CNI_COMMAND": "VERSION"}, stdin=subprocess.DEVNULL).succeeded()
    said = answer.json
    expect_equal(sorted(said), ["cniVersion", "supportedVersions"], "keys")
    expect_equal(said["supportedVersions"], list(VERSIONS), "supportedVersions")


@row("A2", "VERSION with the dummies that libcni puts into the other variables", agent=False)
def version_with_dummies(node):
    answer = node.exec(node.environment(
        "VERSION", CNI_CONTAINERID="", CNI_NETNS="dummy", CNI_IFNAME="dummy", CNI_PATH="dummy",
        CNI_ARGS=""), b'{"cniVersion":"1.0.0"}').succeeded()
    expect("1.0.0" in answer.json["supportedVersions"], "1.0.0 is listed")


@row("A3", "every version that is listed is taken by ADD")
def every_version(node):
    for version in VERSIONS:
        pod = node.pod()
        node.add(pod, cniVersion=version)
        node.delete(pod, cniVersion=version)


@row("A4", "the result has the shape of its version, and says the version that was asked for")
def result_shapes(node):
    for version in VERSIONS:
        pod = node.pod()
        result = node.add(pod, cniVersion=version)
        expect_equal(result["cniVersion"], version, "cniVersion")
        for address in result["ips"]:
            expect_equal("version" in address, version < "1.0.0", f"{version}: ips[].version")
            expect_equal(address.get("version", "4"), "4", "the family")
        for interface in result["interfaces"]:
            expect_equal("mtu" in interface, version == "1.1.0", f"{version}: interfaces[].mtu")


@row("A5", "an unsupported cniVersion: code 1, with both sides' versions", agent=False)
def unsupported_version(node):
    error = node.cni("ADD", node.pod(), node.conf(cniVersion="9.9.9")).failed(BAD_VERSION)
    for version in ("9.9.9", *VERSIONS):
        expect(version in error["details"], f"{version} is named in {error}")


@row("A6", "no cniVersion means 0.1.0, which is not supported: code 1", agent=False)
def missing_version(node):
    error = node.cni("ADD", node.pod(), node.conf(cniVersion=None)).failed(BAD_VERSION)
    expect("0.1.0" in error["details"], f"0.1.0 is named in {error}")


@row("A7", "a cniVersion that is no version: an error, no crash", agent=False)
def odd_versions(node):
    for version in ("abc", "1", "1.0.0.0", "", 1, 1.1, [], {}, True):
        node.cni("ADD", node.pod(), node.conf(cniVersion=version)).failed(BAD_VERSION, BAD_JSON)


@row("A8", "a missing variable: code 4 with its name; several: all names", agent=False)
def missing_variables(node):
    pod = node.pod()
    names = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME")
    for name in names:
        error = node.cni("ADD", pod, **{name: None}).failed(BAD_ENVIRONMENT)
        expect(name in error["msg"], f"{name} is named in {error}")
    error = node.cni("ADD", pod, **dict.fromkeys(names)).failed(BAD_ENVIRONMENT)
    for name in names:
        expect(name in error["msg"], f"{name} is named in {error}")


@row("A9", "a container id with characters that it may not have: code 4", agent=False)
def bad_container_ids(node):
    for name in ("some-%%container-id", "-a", ".a", "_a", "a b", "a/b", "", "ä"):
        node.cni("ADD", node.pod(), CNI_CONTAINERID=name).failed(BAD_ENVIRONMENT)


@row("A10", "container ids of 64 and 200 characters; link names stay within 15")
def long_container_ids(node):
    for length in (64, 200):
        pod = node.pod()
        pod.id = "c" * length
        result = node.add(pod)
        expect(len(result["interfaces"][0]["name"]) <= 15, f"the host link's name in {result}")
        node.delete(pod)


@row("A11", "an interface name that the kernel would not take: code 4", agent=False)
def bad_interface_names(node):
    for name in ("a" * 16, ".", "..", "a/b", "a:b", "a b", "a\tb", "a\u00a0b", "a\u2003b", "a\nb",
                 "\x7f"):
        node.cni("ADD", node.pod(), ifname=name).failed(BAD_ENVIRONMENT)


@row("A12", "an interface name of exactly 15 characters")
def longest_interface_name(node):
    pod = node.pod()
    name = "abcdefghijklmno"
    node.add(pod, ifname=name)
    expect(pod.link(name), "the link is there")
    node.delete(pod, ifname=name)


@row("A13", "an unknown CNI_COMMAND, and a known one in lower case: code 4", agent=False)
def unknown_commands(node):
    for command in ("add", "Add", "UPDATE", " ADD", "ADD "):
        error = node.cni(command, node.pod()).failed(BAD_ENVIRONMENT)
        expect("CNI_COMMAND" in error["msg"], f"the variable is named in {error}")


@row("A14", "without CNI_COMMAND: who it is, on stderr, and exit code 0", agent=False)
def about(node):
    answer = node.exec({}, stdin=subprocess.DEVNULL).silent()
    expect(b"CNI" in answer.err and b"1.1.0" in answer.err, f"stderr: {answer.err!r}")


@row("A15", "standard input that is no JSON object: code 6, one JSON object on stdout", agent=False)
def bad_json(node):
    whole = json.dumps(node.conf()).encode()
    for text in (b"", b"{bad", b"[]", b"null", b'"x"', b"1", whole[:-1], whole + whole,
                 b'{"name":"\xff\xfe","cniVersion":"1.1.0"}', b"\x00", b'{"a":' * 150_000,
                 b"[" * 1_000_000, b'{"a":"' + b"x" * (1 << 20)):
        answer = node.cni("ADD", node.pod(), text)
        answer.failed(BAD_JSON)


@row("A16", "no name, or one that is no identifier: code 7", agent=False)
def bad_names(node):
    for name in (None, "", "a/b", "-a", ".a", "a b", "ä"):
        node.cni("ADD", node.pod(), node.conf(name=name)).failed(BAD_CONFIG)


@row("A17", "unknown keys, and `capabilities` that a runtime has left in, are passed over")
def unknown_keys(node):
    pod = node.pod()
    node.add(pod, capabilities={"bandwidth": True, "portMappings": True}, disableGC=True,
             cniVersions=["1.0.0", "1.1.0"], loadOnlyInlinedPlugins=True, ipMasq=True,
             somebody={"else": [1, 2, {"deep": None}]})
    node.delete(pod)


@row("A18", "of a key that is there twice the last one counts, as for other plugins")
def duplicate_keys(node):
    text = json.dumps(node.conf())[:-1]
    twice = (text + ',"cniVersion":"1.0.0"}').encode()
    expect_equal(node.cni("ADD", node.pod(), twice).succeeded().json["cniVersion"], "1.0.0",
                 "the version")
    node.cni("ADD", node.pod(), (text + ',"cniVersion":"9.9.9"}').encode()).failed(BAD_VERSION)


@row("A19", "VERSION answers although standard input stays open", agent=False)
def open_stdin(node):
    reader, writer = os.pipe()
    try:
        with os.fdopen(reader) as stdin:
            answer = node.exec({"CNI_COMMAND": "VERSION"}, stdin=stdin).succeeded()
    finally:
        os.close(writer)
    expect(answer.took < 5, f"it took {answer.took} s")


@row("A20", "stdout carries the result alone; stderr that is closed or full changes nothing")
def only_the_result(node):
    pod = node.pod()
    answer = node.cni("ADD", pod).succeeded()
    expect_equal(answer.err, b"", "stderr")
    expect(answer.json["interfaces"], "one JSON object")
    node.delete(pod)
    other = node.pod()
    path = os.path.join(node.programs, "spoke")
    for sink in (">&-", ">/dev/full"):
        done = subprocess.run(["sh", "-c", f"exec {path} 2{sink}"],
                              input=json.dumps(node.conf()).encode(),
                              env=node.environment("ADD", other), capture_output=True, check=False)
        expect_equal(done.returncode, 0, f"with stderr {sink}: {done.stdout!r}")
        node.delete(other)
        other = node.pod()
