"""Writes the text that the measurements read: the language reference that
Python carries as pydoc_data.topics (PSF licence), its markup left as it is.
The same Python version gives the same bytes; the sum is printed."""
import hashlib
import pydoc_data.topics
import sys

text = "\n\n".join(v.strip() for k, v in sorted(pydoc_data.topics.topics.items()) if len(v) > 2000)
text = text[:int(sys.argv[2]) if len(sys.argv) > 2 else 150000]
open(sys.argv[1], "w").write(text)
print("python %s, %d characters, sha256 %s" % (sys.version.split()[0], len(text), hashlib.sha256(text.encode()).hexdigest()), file=sys.stderr)
