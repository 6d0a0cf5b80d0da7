package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// inside is what the objects of a field may hold, or those of its list; a field
// without an entry is not looked into. Others than these are taken as they come, but
// for those that are probably misspelt.
type inside map[string]inside

// functionFields are those of a function, called or described.
var functionFields = inside{"name": nil, "arguments": nil, "description": nil, "parameters": nil, "strict": nil}

// nested are the fields of requests that hold others.
var nested = map[string]inside{
	"messages": {
		"role": nil, "name": nil, "tool_call_id": nil, "reasoning_content": nil, "reasoning": nil, "thinking": nil, "refusal": nil, "audio": nil,
		"function_call": nil, "annotations": nil,
		"content":    {"type": nil, "text": nil, "image_url": nil, "input_audio": nil, "file": nil, "refusal": nil, "video_url": nil, "audio_url": nil, "cache_control": nil, "thinking": nil},
		"tool_calls": {"id": nil, "type": nil, "index": nil, "function": functionFields, "custom": nil},
	},
	"tools":           {"type": nil, "function": functionFields, "custom": nil},
	"response_format": {"type": nil, "json_schema": {"name": nil, "description": nil, "schema": nil, "strict": nil}, "schema": nil, "grammar": nil},
	"stream_options":  {"include_usage": nil, "include_obfuscation": nil, "continuous_usage_stats": nil, "chunk_include_usage": nil},
}

// misspelt refuses the first field of raw that is probably a misspelling, at whatever
// depth of in; place is where raw stands, param the field of the request. raw is valid JSON.
func (in inside) misspelt(param, place string, raw json.RawMessage) error {
	if in == nil || len(raw) == 0 {
		return nil
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return nil
		}
		for i, x := range list {
			if x[0] != '{' { // a list in a list is no field's, and lists may stand in lists as deep as a body is long
				continue
			}
			if err := in.misspelt(param, fmt.Sprintf("%s[%d]", place, i), x); err != nil {
				return err
			}
		}
	case '{':
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return nil
		}
		known := map[string]bool{}
		for name := range in {
			known[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			lower := strings.ToLower(name)
			if len(name) > 64 {
				continue
			}
			if known[lower] {
				if err := in[lower].misspelt(param, place+"."+lower, fields[name]); err != nil {
					return err
				}
				continue
			}
			if meant := misspelt(lower, known); meant != "" {
				return badRequest(param, "%s.%s is no field of a request; did you mean %s?", place, name, meant)
			}
		}
	}
	return nil
}
