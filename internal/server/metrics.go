package server

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/inferflow/inferflow/internal/engine"
)

// bounds are the upper limits of the histograms' buckets in seconds.
var bounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

type histogram struct {
	counts [14]int64
	sum    float64
	n      int64
}

func (h *histogram) add(x float64) {
	i := 0
	for i < len(bounds) && x > bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += x
	h.n++
}

// histograms are the times that users feel.
type histograms struct {
	mu                   sync.Mutex
	first, between, wait histogram
}

func (h *histograms) observe(t engine.Timings) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait.add(t.Queued.Seconds())
	h.first.add((t.Queued + t.Prefill).Seconds())
	if t.Tokens > 1 {
		h.between.add(t.Decode.Seconds() / float64(t.Tokens-1))
	}
}

// metrics writes the gauges in the text form of Prometheus.
func (v *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	one := func(name, kind, help string, x any) {
		fmt.Fprintf(w, "# HELP inferflow_%s %s\n# TYPE inferflow_%s %s\ninferflow_%s %v\n", name, help, name, kind, name, x)
	}
	if v.s != nil {
		v.engineMetrics(one)
	} else {
		v.textMetrics(one)
	}
	one("uptime_seconds", "gauge", "Time since the start.", time.Since(v.born).Seconds())
	one("goroutines", "gauge", "Goroutines of the process.", runtime.NumGoroutine())
	fmt.Fprintf(w, "# HELP inferflow_http_responses_total Answers by status.\n# TYPE inferflow_http_responses_total counter\n")
	for i := 2; i < len(v.codes); i++ {
		fmt.Fprintf(w, "inferflow_http_responses_total{code=\"%dxx\"} %d\n", i, v.codes[i].Load())
	}
	v.times.write(w)
	return nil
}

// engineMetrics writes the gauges of the engine.
func (v *Server) engineMetrics(one func(name, kind, help string, x any)) {
	st := v.s.Engine.Stats()
	one("requests_running", "gauge", "Sequences that are being computed.", st.Running)
	one("requests_waiting", "gauge", "Requests that wait for memory or a place.", st.Waiting)
	used := 0.0
	if total := st.BlocksUsed + st.BlocksFree; total > 0 {
		used = float64(st.BlocksUsed) / float64(total)
	}
	one("kv_cache_usage", "gauge", "Share of the key/value blocks in use, 0 to 1.", used)
	one("kv_cache_blocks", "gauge", "Key/value blocks of 16 tokens.", st.BlocksUsed+st.BlocksFree)
	one("kv_cache_bytes", "gauge", "Bytes of the key/value pool.", v.s.Model.KVBytes)
	one("parked_total", "counter", "Sequences that gave their memory back and began again.", st.Parked)
	one("requests_total", "counter", "Requests that were accepted.", st.Requests)
	one("requests_cancelled_total", "counter", "Requests that their client ended.", st.Cancelled)
	one("requests_failed_total", "counter", "Answers that ended with an error.", st.Errors)
	one("prompt_tokens_total", "counter", "Prompt tokens of accepted requests.", st.PromptTokens)
	one("generated_tokens_total", "counter", "Tokens of answers.", st.Tokens)
	one("steps_total", "counter", "Batches computed.", st.Steps)
	one("step_seconds_total", "counter", "Time spent in computing batches.", st.StepSeconds)
}

func (h *histograms) write(w io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range []struct {
		name, help string
		h          *histogram
	}{{"time_to_first_token_seconds", "Time from a request to its first token.", &h.first},
		{"time_per_token_seconds", "Mean time between the tokens of an answer.", &h.between},
		{"queue_seconds", "Time from a request to its first step.", &h.wait}} {
		fmt.Fprintf(w, "# HELP inferflow_%s %s\n# TYPE inferflow_%s histogram\n", x.name, x.help, x.name)
		sum := int64(0)
		for i, b := range bounds {
			sum += x.h.counts[i]
			fmt.Fprintf(w, "inferflow_%s_bucket{le=\"%g\"} %d\n", x.name, b, sum)
		}
		fmt.Fprintf(w, "inferflow_%s_bucket{le=\"+Inf\"} %d\ninferflow_%s_sum %g\ninferflow_%s_count %d\n", x.name, x.h.n, x.name, x.h.sum, x.name, x.h.n)
	}
}
