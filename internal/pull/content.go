package pull

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// headSize is how much of a file is looked at before it is believed.
const headSize = 512

// maxSafetensorsHeader is the limit of the safetensors format.
const maxSafetensorsHeader = 100 << 20

// errContent marks an answer that is something else than a model.
var errContent = fmt.Errorf("%w: no model was sent", ErrHash)

// errLength marks an answer whose end cannot be told from a broken connection.
var errLength = errors.New("the server does not say where the file ends")

// formOf maps the ending of a name to the form that such a file has.
var formOf = map[string]string{".gguf": "GGUF", ".safetensors": "safetensors", ".whl": "zip", ".zip": "zip"}

// formless are the endings of files that begin in no fixed way.
var formless = map[string]bool{
	".json": true, ".txt": true, ".model": true, ".jinja": true, ".tiktoken": true, ".star": true, ".bin": true, ".pt": true, ".pth": true,
}

// form names the format that the first bytes of a file show, or "".
func form(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("GGUF")):
		return "GGUF"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "zip"
	case len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint64(head) <= maxSafetensorsHeader:
		return "safetensors"
	}
	return ""
}

// checkHead holds the first bytes of a file against its name and the type that
// the server gives it. Of a file that is held to a hash it refuses web pages
// only; whole says that head is all of it.
func checkHead(head []byte, name, contentType string, hashed, whole bool) error {
	ext, is := strings.ToLower(filepath.Ext(name)), form(head)
	kind, _, _ := mime.ParseMediaType(contentType)
	page := kind == "text/html" || kind == "application/xhtml+xml" || looksHTML(head)
	want := formOf[ext]
	switch {
	case is == "" && page:
		return fmt.Errorf("%w: it is a web page that begins %q", errContent, firstLine(head))
	case hashed || formless[ext]:
		return nil
	case len(head) == 0:
		return fmt.Errorf("%w: the answer is empty", errContent)
	case want != "" && is != want:
		return fmt.Errorf("%w: a %s file does not begin %q", errContent, want, firstLine(head))
	case is == "" && whole && printable(head):
		return fmt.Errorf("%w: it is the text %q", errContent, firstLine(head))
	}
	return nil
}

// looksHTML reports whether a text begins as a web page does.
func looksHTML(head []byte) bool {
	head = bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))))
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

// webPage reports whether the file at path is a web page. Earlier versions
// kept what a login page or a proxy had sent in place of a model.
func webPage(path string) bool {
	return looksHTML(headOfFile(path))
}

// headOfFile is the beginning of the file at path, nothing of one that cannot
// be read.
func headOfFile(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, _ := io.ReadFull(f, head)
	return head[:n]
}

func printable(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) }) < 0
}

// firstLine is the first line with anything in it, cut to a length to show.
func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	s := []rune(strings.ToValidUTF8(strings.TrimSpace(string(line)), "\uFFFD"))
	if len(s) > 80 {
		return string(s[:79]) + "…"
	}
	return string(s)
}

// framed reports whether an early end of the answer's body would show: it has a
// length, comes in chunks, or in HTTP/2 frames. What ends with the connection
// does not, not even over TLS, whose closing servers often leave out.
func framed(resp *http.Response) bool {
	return resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor >= 2
}

// look checks the beginning of what has been fetched.
func (t *transfer) look(whole bool) error {
	head := make([]byte, min(t.n, headSize))
	if _, err := t.f.ReadAt(head, 0); err != nil && err != io.EOF {
		return fmt.Errorf("pull: reading %s: %w", t.path, err)
	}
	t.looked = true
	name := filepath.Base(strings.TrimSuffix(t.path, partialSuffix))
	if err := checkHead(head, name, t.kind, t.r.sha256 != "", whole && t.n < headSize); err != nil {
		return fmt.Errorf("%s: %w", redact(t.r.url), err)
	}
	return nil
}
