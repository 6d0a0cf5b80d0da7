package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inferflow/inferflow/chat"
)

// readJSON reads a request's whole body, which is a JSON object in UTF-8, into
// v, a pointer to a struct. Fields that v does not know are logged once each.
func (v *Server) readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := v.body(w, r)
	if err != nil {
		return err
	}
	if err := decode(raw, into); err != nil {
		return err
	}
	return v.unknown(raw, into)
}

// body reads a request's whole body.
func (v *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(v.o.BodyTime))
	raw, err := io.ReadAll(r.Body)
	if err != nil { // the deadline stays, or the end of the request waits for the rest of the body
		w.Header().Set("Connection", "close")
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, err
		}
		return nil, &apiError{Status: http.StatusRequestTimeout, Message: "the body did not arrive: " + err.Error()}
	}
	_ = rc.SetReadDeadline(time.Time{})
	return raw, nil
}

// decode reads JSON from strangers.
func decode(raw []byte, into any) error {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return badRequest("", "the request has no body; a JSON object is expected")
	case !utf8.Valid(raw):
		return badRequest("", "the body is not valid UTF-8")
	}
	err := json.Unmarshal(raw, into)
	if err == nil && raw[0] != '{' {
		return badRequest("", "the body is not a JSON object")
	}
	var e *apiError
	var field *chat.FieldError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.As(err, &field): // inside a message
		return badRequest("messages", "messages%s", inMessages(raw, field))
	case errors.As(err, &syntax):
		return badRequest("", "the body is not valid JSON: %v (at byte %d)", syntax, syntax.Offset)
	}
	if field = chat.FieldErrorOf("", err); field == nil {
		return badRequest("", "%s", plain(err))
	}
	for _, embedded := range []string{"common.", "strategies."} { // structs whose fields are the request's own
		field.Field = strings.TrimPrefix(field.Field, embedded)
	}
	if field.Field == "" {
		return badRequest("", "a JSON object is expected, not %s", field.Got)
	}
	param, _, _ := strings.Cut(field.Field, ".")
	return badRequest(param, "%v", field)
}

// inMessages finds the message that cannot be read and tells the field in it.
func inMessages(raw []byte, field *chat.FieldError) string {
	var q struct {
		Messages []json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(raw, &q)
	for i := range q.Messages {
		var m chat.Message
		if errors.As(json.Unmarshal(q.Messages[i], &m), &field) {
			dot := "."
			if field.Field == "" {
				dot = ""
			}
			return fmt.Sprintf("[%d]%s%v", i, dot, field)
		}
	}
	return ": " + field.Error()
}

// null is the place of the first null in a list, or in a list of lists, as an
// index of it ("[1]", "[0][2]"); "" where there is none before an object. raw is
// valid JSON, in which an n outside of strings begins a null.
func null(raw []byte) string {
	var at []int
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '[':
			at = append(at, 0)
			if len(at) > 8 {
				return ""
			}
		case ']':
			at = at[:len(at)-1]
		case ',':
			at[len(at)-1]++
		case '{':
			return ""
		case 'n':
			place := ""
			for _, k := range at {
				place += fmt.Sprintf("[%d]", k)
			}
			return place
		}
	}
	return ""
}

// quietFields are fields of the protocol that change nothing here.
var quietFields = map[string]bool{"user": true, "store": true, "metadata": true, "service_tier": true, "safety_identifier": true,
	"prompt_cache_key": true, "parallel_tool_calls": true, "verbosity": true, "prediction": true, "modalities": true}

// unknown logs each unknown field once, as ignoring it may surprise. Those that
// would bind the answer to a form are refused, and those that are probably
// misspelt.
func (v *Server) unknown(raw []byte, into any) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	known := map[string]bool{}
	names(reflect.TypeOf(into).Elem(), known)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lower := strings.ToLower(name)
		if len(name) > 64 || string(fields[name]) == "null" {
			continue
		}
		if strings.HasPrefix(name, "guided_") {
			return badRequest(name, "%s is not served; leave it out", name)
		}
		if known[lower] {
			if err := nested[lower].misspelt(lower, lower, fields[name]); err != nil {
				return err
			}
			continue
		}
		if meant := misspelt(lower, known); meant != "" {
			return badRequest(name, "%s is no field of this request; did you mean %s?", name, meant)
		}
		if err := otherServers(name, fields[name], known); err != nil {
			return err
		}
		v.passOver(name)
	}
	return nil
}

// passOver logs a field, once.
func (v *Server) passOver(name string) {
	if v.o.Log == nil || quietFields[name] {
		return
	}
	v.mu.Lock()
	fresh := !v.told[name] && len(v.told) < 200
	if fresh {
		v.told[name] = true
	}
	v.mu.Unlock()
	if fresh {
		v.o.Log.Printf("the field %q of requests is not known and is passed over", name)
	}
}

// names collects the JSON names of a struct.
func names(t reflect.Type, into map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names(f.Type, into)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		into[name] = true
	}
}
