"""An authority of openssl's, and certificates of it."""

import os
import time

from ha_lab import sh

DAY = 86400
CONFIG = """[ca]
default_ca = authority
[authority]
database = {directory}/index
serial = {directory}/serial
new_certs_dir = {directory}
certificate = {directory}/ca.pem
private_key = {directory}/ca.key
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""


def make_authority(directory):
    """A key and its certificate, ca.key and ca.pem."""
    os.makedirs(directory)
    sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
       "-days", "3650", "-keyout", f"{directory}/ca.key", "-out", f"{directory}/ca.pem", "-subj", "/CN=ha")
    for name, text in (("ca.conf", CONFIG.format(directory=directory)), ("index", ""), ("serial", "1000\n")):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


def sign(directory, name, use, age=0, left=DAY):
    """A key and a certificate for it, of the authority in the directory: valid since `age` seconds ago, and
    for `left` more. Returns the files as a configuration names them."""
    stem = os.path.join(directory, name)
    if not os.path.exists(f"{stem}.key"):
        sh("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
           f"{stem}.key", "-out", f"{stem}.csr", "-subj", f"/CN={name}")
    with open(f"{stem}.ext", "w", encoding="utf-8") as file:
        file.write(f"subjectAltName=DNS:{name}\nextendedKeyUsage={use}\n")
    begin, end = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + at)) for at in (-age, left))
    sh("openssl", "ca", "-batch", "-notext", "-config", f"{directory}/ca.conf", "-startdate", begin,
       "-enddate", end, "-extfile", f"{stem}.ext", "-in", f"{stem}.csr", "-out", f"{stem}.new")
    os.replace(f"{stem}.new", f"{stem}.pem")
    return {"ca": f"{directory}/ca.pem", "certificate": f"{stem}.pem", "key": f"{stem}.key"}
