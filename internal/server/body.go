package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// readJSON reads a request's whole body, which is a JSON object in UTF-8, into
// v, a pointer to a struct. Fields that v does not know are logged once each.
func (v *Server) readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(v.o.BodyTime))
	raw, err := io.ReadAll(r.Body)
	if err != nil { // the deadline stays, or the end of the request waits for the rest of the body
		w.Header().Set("Connection", "close")
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return &apiError{Status: http.StatusRequestTimeout, Message: "the body did not arrive: " + err.Error()}
	}
	_ = rc.SetReadDeadline(time.Time{})
	if err := decode(raw, into); err != nil {
		return err
	}
	v.noteUnknown(raw, into)
	return nil
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
	var typ *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.As(err, &typ) && error(typ) != err: // inside a message
		return badRequest("messages", "%v", err)
	case errors.As(err, &typ) && typ.Field == "":
		return badRequest("", "a JSON object is expected, not %s", typ.Value)
	case errors.As(err, &typ):
		field := strings.TrimPrefix(typ.Field, "common.")
		return badRequest(field, "%s: a JSON %s is not expected here", field, typ.Value)
	case errors.As(err, &syntax):
		return badRequest("", "the body is not valid JSON: %v (at byte %d)", syntax, syntax.Offset)
	}
	return badRequest("", "%v", err)
}

// quietFields are fields of the protocol that change nothing here.
var quietFields = map[string]bool{"user": true, "store": true, "metadata": true, "service_tier": true, "safety_identifier": true,
	"prompt_cache_key": true, "parallel_tool_calls": true, "verbosity": true, "prediction": true, "modalities": true}

// noteUnknown logs each unknown field once, as ignoring it may surprise.
func (v *Server) noteUnknown(raw []byte, into any) {
	if v.o.Log == nil {
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return
	}
	known := map[string]bool{}
	names(reflect.TypeOf(into).Elem(), known)
	for name := range fields {
		if known[strings.ToLower(name)] || quietFields[name] || len(name) > 64 {
			continue
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
