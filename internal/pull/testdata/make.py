"""Makes zip64.whl: a tiny wheel whose members are written in the zip64 form.

Run in this folder: python3 make.py
"""

import base64
import hashlib
import zipfile


def main():
    members = {"tiny/model.gguf": b"GGUF" + bytes(range(256)) * 8, "tiny/__init__.py": b""}
    record = ""
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    members["tiny-1.0.dist-info/RECORD"] = record.encode() + b"tiny-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile("zip64.whl", "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            with z.open(info, "w", force_zip64=True) as f:
                f.write(data)


main()
