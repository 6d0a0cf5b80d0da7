package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzBodies: whatever a body holds, it is prepared or refused with a status
// from 400 to 499, and what is prepared fits the context.
func FuzzBodies(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		_, list := readTranscript(string(raw))
		for _, x := range list {
			if i := strings.IndexAny(x.request, "{["); i >= 0 && len(x.request) < 2000 {
				f.Add([]byte(x.request[i:]))
			}
		}
	}
	f.Add([]byte(`{"model":"tiny","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{"}}]}],"chat_template_kwargs":{"messages":1}}`))
	f.Add([]byte("{\"model\":\"tiny\",\"prompt\":\"\xff\"}"))
	v := New(service(f), Options{Name: "tiny"})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 4096 {
			return
		}
		var q chatRequest
		err := decode(raw, &q)
		if err == nil {
			var ids []int32
			if _, ids, err = v.prepareChat(context.Background(), &q); err == nil && (len(ids) == 0 || len(ids) >= 256) {
				t.Errorf("a prompt of %d tokens", len(ids))
			}
		}
		refusedWell(t, err)
		var c completionRequest
		if err = decode(raw, &c); err == nil {
			_, err = v.prepareCompletion(context.Background(), &c)
		}
		refusedWell(t, err)
	})
}

func refusedWell(t *testing.T, err error) {
	if err == nil {
		return
	}
	if e := toAPI(err); e.Status < 400 || e.Status > 499 || e.Message == "" {
		t.Errorf("status %d: %v", e.Status, err)
	}
	var e *apiError
	if errors.As(err, &e) && e.Status == 0 {
		t.Errorf("no status: %v", err)
	}
}
